"""next() of a loader's iterator is seen in the slot of its class, and by name, whoever calls it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from textwrap import dedent
from typing import Any

import pytest
from stepwatch import _core

pytestmark = pytest.mark.once

torch: Any = pytest.importorskip("torch", reason="torch is not installed")

import stepwatch.torch as stepwatch_torch  # noqa: E402

Recording = Any
watched = pytest.mark.usefixtures("watch")
Base = torch.utils.data.dataloader._BaseDataLoaderIter


@pytest.fixture
def watch() -> Iterator[stepwatch_torch.Watch]:
    watching = stepwatch_torch.auto()
    yield watching
    watching.remove()


def loader(count: int = 4, **options: Any) -> Any:
    return torch.utils.data.DataLoader(torch.arange(count), batch_size=1, **options)


def trains(batch: Any) -> None:
    """A backward says that batches are trained with."""
    (batch.float() * torch.ones(1, requires_grad=True)).sum().backward()


@watched
def test_for_and_next_and_by_name(recorded: Recording) -> None:
    for batch in loader(3):
        trains(batch)
    iterator = iter(loader(3))
    trains(next(iterator))
    trains(iterator.__next__())
    trains(Base.__next__(iterator))
    assert recorded.calls("data_wait") == 3 + 1 + 3


@watched
def test_the_end_and_errors_are_those_of_torch(recorded: Recording) -> None:
    class Broken(torch.utils.data.Dataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 3

        def __getitem__(self, index: int) -> int:
            if index == 1:
                raise KeyError("as told")
            return index

    iterator = iter(torch.utils.data.DataLoader(Broken(), batch_size=None))
    assert next(iterator) == 0
    with pytest.raises(KeyError, match="as told"):
        next(iterator)
    assert next(iterator) == 2
    with pytest.raises(StopIteration):
        next(iterator)
    assert next(iterator, "none") == "none"
    assert recorded.calls("data_wait") == 5


@watched
def test_a_class_of_the_programs_own(recorded: Recording) -> None:
    single = torch.utils.data.dataloader._SingleProcessDataLoaderIter

    class Twice(single):  # type: ignore[misc,valid-type]
        def __next__(self) -> Any:
            return super().__next__() * 2

    class Same(single):  # type: ignore[misc,valid-type]
        pass

    assert [int(batch) for batch in Twice(loader(3))] == [0, 2, 4]
    assert [int(batch) for batch in Same(loader(3))] == [0, 1, 2]
    assert recorded.calls("data_wait") == 8


@watched
def test_somebody_else_replaces_next(recorded: Recording) -> None:
    before = Base.__next__
    seen = []

    def theirs(self: Any) -> Any:
        seen.append(1)
        return before(self)

    Base.__next__ = theirs
    try:
        for batch in loader(3):
            trains(batch)
    finally:
        Base.__next__ = before
    assert len(seen) == 4
    assert recorded.calls("data_wait") == 4


def test_it_is_as_before_afterwards(recorded: Recording) -> None:
    before = Base.__next__
    iterator = None
    with stepwatch_torch.auto():
        iterator = iter(loader(3))
        next(iterator)
    assert Base.__next__ is before
    assert int(next(iterator)) == 1
    assert recorded.calls("data_wait") == 1


@watched
def test_functions_among_transforms_need_the_other_way(recorded: Recording) -> None:
    class Shifted(torch.utils.data.Dataset):  # type: ignore[misc]
        def __init__(self) -> None:
            self.transform = float

        def __len__(self) -> int:
            return 2

        def __getitem__(self, index: int) -> float:
            return self.transform(index)

    data = Shifted()
    assert [float(b) for b in torch.utils.data.DataLoader(data, batch_size=1)] == [0.0, 1.0]
    assert data.transform is float
    assert recorded.calls("data_wait") == 3


PROGRAM = """
import sys
import stepwatch, torch
from stepwatch import _core, integrations

integrations.install()
assert _core._loops_now()["listens"]
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for x in torch.utils.data.DataLoader(torch.ones(8, 1), batch_size=1):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()


with stepwatch.record("a", out=sys.argv[1] + "/a"):
    train()
    assert not _core._loops_now()["listens"], "a loader gives the steps"
integrations.remove()
heard = []
sys.addaudithook(lambda event, _: heard.append(event))
integrations.install()
assert _core._loops_now()["listens"]
id(1)
assert "builtins.id" in heard
with stepwatch.record("b", out=sys.argv[1] + "/b"):
    train()
integrations.remove()
assert not _core._loops_now()["listens"]
print("good")
"""


def test_no_audit_hook_stays_once_it_is_known_who_gives_steps(tmp_path: Any) -> None:
    program = tmp_path / "program.py"
    program.write_text(dedent(PROGRAM))
    command = [sys.executable, str(program), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "good\n"), done.stderr


def test_slots_are_asked_for_rightly() -> None:
    with pytest.raises(TypeError):
        _core.loader_slots({}, None)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        _core.loader_slot(3)  # type: ignore[arg-type]
