"""Calls of modules are seen in the slots of their classes: whatever a program does to these."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from stepwatch import _core

pytestmark = pytest.mark.once

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
nn: Any = torch.nn

import stepwatch.torch as stepwatch_torch  # noqa: E402

Recording = Any
watched = pytest.mark.usefixtures("watch")


class Before(nn.Module):  # type: ignore[misc]
    """A class that was there before anybody watched."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any, fails: bool = False) -> Any:
        if fails:
            raise ValueError("as told")
        return self.layer(x)


@pytest.fixture
def watch() -> Iterator[stepwatch_torch.Watch]:
    watching = stepwatch_torch.auto()
    yield watching
    watching.remove()


def x() -> Any:
    return torch.ones(2, 3)


@watched
def test_attributes_stay(recorded: Recording) -> None:
    model = Before()
    assert nn.Module.__call__ is nn.Module._wrapped_call_impl
    model(x())
    assert recorded.calls("Before") == 1


def test_objects_that_were_there_before(recorded: Recording) -> None:
    model = Before()
    with stepwatch_torch.auto():
        model(x())
    model(x())
    assert recorded.calls("Before") == 1


@watched
def test_classes_that_are_made_later(recorded: Recording) -> None:
    class Later(Before):
        pass

    class Own(nn.Module):  # type: ignore[misc]
        def __call__(self, x: Any) -> Any:
            return super().__call__(x) + 1

        def forward(self, x: Any) -> Any:
            return x

    later, own = Later(), Own()
    later(x())
    assert torch.equal(own(x()), x() + 1)
    assert (recorded.calls("Later"), recorded.calls("Own")) == (1, 1)


@watched
def test_copies_and_pickles(recorded: Recording) -> None:
    model = Before()
    copy.deepcopy(model)(x())
    pickle.loads(pickle.dumps(model))(x())
    model(x())
    assert sum(recorded.calls(name) for name in ("Before", "Before 2", "Before 3")) == 3


@watched
def test_a_class_that_never_built_an_object(recorded: Recording) -> None:
    """One that is unpickled in a program that only has its file."""

    class Unpickled(Before):
        pass

    model = Before()
    model.__class__ = Unpickled
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model(x()).sum().backward()
        optimizer.step()
    assert recorded.calls("Unpickled") >= 3


@watched
def test_somebody_sets_call(recorded: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, seen = nn.Module.__call__, []

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(type(self).__name__)
        return usual(self, *args, **kwargs)

    model = Before()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(x())
    with monkeypatch.context() as patched:
        patched.setattr(nn.Module, "__call__", call)
        for _ in range(8):
            model(x()).sum().backward()
            optimizer.step()
    assert seen.count("Before") == 8
    for _ in range(8):
        model(x()).sum().backward()
        optimizer.step()
    assert recorded.calls("Before") > 10


@watched
def test_symbolic_trace(recorded: Recording) -> None:
    """torch.fx sets ``__call__`` for as long as it looks."""
    model = Before()
    traced = torch.fx.symbolic_trace(model, concrete_args={"fails": False})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model(x()).sum().backward()
        optimizer.step()
    assert torch.equal(traced(x(), False), model(x()))
    assert recorded.calls("Before") >= 4


@watched
def test_errors_are_the_programs(recorded: Recording) -> None:
    model = Before()
    with pytest.raises(ValueError, match="as told"):
        model(x(), fails=True)
    with pytest.raises(TypeError, match="forward"):
        model()
    model(x())
    rows = [row for row in recorded.report["sections"] if row["name"] == "Before"]
    assert (rows[0]["calls"], rows[0]["errors"]) == (3, 2)


@watched
def test_errors_in_a_step_whose_backward_is_looked_at(recorded: Recording) -> None:
    model = Before()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    failed = 0
    for _ in range(8):
        try:
            model(x(), fails=True)
        except ValueError:
            failed += 1
        model(x()).sum().backward()
        optimizer.step()
    assert failed == 8
    assert recorded.calls("Before") == 16


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="module_slots"):
        _core.module_slots(3, None)  # type: ignore[arg-type]
    assert not _core.module_slots(int, None)
    _core.module_slots_back()


def test_on_and_off_again(recorded: Recording) -> None:
    model = Before()
    for _ in range(3):
        with stepwatch_torch.auto():
            model(x())
        model(x())
    assert recorded.calls("Before") == 3
