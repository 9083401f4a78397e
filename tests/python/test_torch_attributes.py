"""Looking for transforms leaves datasets as quick as they were."""

from __future__ import annotations

import functools
import sys
from typing import Any

import pytest
from stepwatch.integrations.torch_transforms import Attributes, Swap, swap, swap_back


class Plain:
    shared = "of the class"

    def __init__(self) -> None:
        self.transform: Any = len
        self.samples = [1, 2]


class Awkward:
    """Has names that are looked for, and none of its own."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def transform(self, x: Any) -> Any:
        return x

    @property
    def augment(self) -> Any:
        self.ran.append("property")
        return len

    @functools.cached_property
    def pipeline(self) -> Any:
        self.ran.append("cached")
        return len

    def __getattr__(self, name: str) -> Any:
        self.ran.append(name)
        raise AttributeError(name)


class Slots:
    __slots__ = ("transform",)

    def __init__(self) -> None:
        self.transform = len


def test_own_attributes() -> None:
    plain = Plain()
    attributes = Attributes(plain)
    assert attributes["transform"] is len
    assert "samples" in attributes
    assert "shared" not in attributes
    assert attributes.get("nothing", 3) == 3
    assert list(attributes) == ["transform", "samples"]
    with pytest.raises(KeyError):
        attributes["nothing"]
    plain.shared = "its own"
    assert attributes["shared"] == "its own"


def test_nothing_of_the_programs_runs() -> None:
    awkward = Awkward()
    attributes = Attributes(awkward)
    for name in ("transform", "augment", "pipeline", "other"):
        assert name not in attributes
    assert awkward.ran == []
    awkward.transform = len  # type: ignore[assignment, method-assign]
    assert attributes["transform"] is len


def test_objects_without_a_dictionary() -> None:
    for each in (Slots(), 3, "text", [1]):
        assert "transform" not in Attributes(each)


def test_swap() -> None:
    plain = Plain()
    swaps = [Swap(Attributes(plain), "transform", len, max)]
    swap(swaps)
    assert vars(plain)["transform"] is max
    swap_back(swaps)
    assert vars(plain)["transform"] is len
    # The program moves what it finds meanwhile.
    swap(swaps)
    plain.other = plain.transform  # type: ignore[attr-defined]
    del plain.transform
    swap_back(swaps)
    assert plain.other is len  # type: ignore[attr-defined]


@pytest.mark.skipif(
    sys.version_info[:2] not in ((3, 11), (3, 12)), reason="dis shows it, and it mattered, there"
)
@pytest.mark.once
def test_code_that_uses_a_dataset_stays_quick() -> None:
    """Attributes of an object that was given a ``__dict__`` are looked up the long way."""
    torch: Any = pytest.importorskip("torch", reason="torch is not installed")
    import dis

    import stepwatch.torch as stepwatch_torch

    class Rows(torch.utils.data.Dataset):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rows = torch.zeros(64, 2)

        def __len__(self) -> int:
            return 64

        def __getitem__(self, index: int) -> Any:
            return self.rows[index]

    rows = Rows()
    with stepwatch_torch.auto():
        for _ in range(20):
            for _ in torch.utils.data.DataLoader(rows, batch_size=8):
                pass
    code = Rows.__getitem__.__code__
    ways = [each.opname for each in dis.get_instructions(code, adaptive=True)]
    assert "LOAD_ATTR_INSTANCE_VALUE" in ways
