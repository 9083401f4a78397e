"""stepwatch.steps, data and step: what is a step, what is waiting, and what is neither."""

from __future__ import annotations

import contextlib
import gc
import itertools
import operator
import pickle
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

if TYPE_CHECKING:
    from .conftest import Recording


class Loader:
    """Looks like a data loader."""

    batch_size = 4

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[int]:
        for number in range(self.count):
            time.sleep(0.002)
            yield number


def phase(recorded: Recording, name: str) -> float:
    """Return the time of a phase in all steps, in milliseconds."""
    (row,) = (row for row in recorded.steps["phases"] if row["phase"] == name)
    return float(row["ms"] * recorded.steps["counted"])


def test_each_batch_is_a_step(recorded: Recording) -> None:
    seen = []
    for batch in stepwatch.steps(Loader(4)):
        seen.append(batch)
        with stepwatch.section("forward"):
            time.sleep(0.001)
    assert seen == [0, 1, 2, 3]
    steps = recorded.steps
    assert (steps["count"], steps["incomplete"], steps["unit"]) == (4, 0, "batch")
    # The question that found no batch waited too.
    assert recorded.calls("data_wait") == 5
    assert recorded.errors("data_wait") == 0
    assert recorded.calls("forward") == 4
    assert phase(recorded, "data_wait") >= 8
    assert phase(recorded, "forward") >= 4


def test_phases_sum_to_the_steps(recorded: Recording) -> None:
    for _ in stepwatch.steps(range(2000)):
        with stepwatch.section("forward"), stepwatch.section("inner"):
            pass
    steps = recorded.steps
    assert steps["count"] == 2000
    measured = [row["ms"] for row in steps["phases"] if row["measured"]]
    assert sum(measured) == pytest.approx(steps["step_ms"]["mean"], rel=1e-9)


def test_break_leaves_an_incomplete_step(recorded: Recording) -> None:
    for batch in stepwatch.steps(Loader(5)):
        if batch == 2:
            break
    assert (recorded.steps["count"], recorded.steps["incomplete"]) == (3, 1)


def test_an_exception_in_the_body(recorded: Recording) -> None:
    def train() -> None:
        for batch in stepwatch.steps(Loader(5)):
            if batch == 2:
                raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        train()
    gc.collect()
    assert recorded.steps["incomplete"] == 1
    assert recorded.steps["count"] == 3


def test_an_exception_in_the_iterator(recorded: Recording) -> None:
    error = OSError("disk")

    def broken() -> Iterator[int]:
        yield 1
        raise error

    with pytest.raises(OSError, match="disk") as caught:
        list(stepwatch.steps(broken()))
    assert caught.value is error
    assert (recorded.steps["count"], recorded.steps["incomplete"]) == (1, 0)
    assert recorded.calls("data_wait") == 2
    assert recorded.errors("data_wait") == 1


def test_an_empty_iterable(recorded: Recording) -> None:
    assert list(stepwatch.steps([])) == []
    with stepwatch.step():
        pass
    assert recorded.steps["count"] == 1


def test_epochs(recorded: Recording) -> None:
    loader = Loader(2)
    again = stepwatch.steps(loader)
    for _ in range(2):
        for _ in again:
            pass
    for _ in stepwatch.steps(loader):  # the same loader: the third epoch
        pass
    batches = stepwatch.steps([1, 2])  # a list cannot be remembered, its wrapper can
    for _ in range(2):
        for _ in batches:
            pass
    assert recorded.steps["count"] == 10
    assert [epoch["epoch"] for epoch in recorded.report["epochs"]] == [0, 1, 2]


@pytest.mark.parametrize(
    "anew",
    [lambda: [1, 2], lambda: range(2), lambda: iter([1, 2]), lambda: enumerate(Loader(2))],
    ids=["list", "range", "iterator", "enumerate"],
)
def test_epochs_of_what_is_made_anew(recorded: Recording, anew: Callable[[], Any]) -> None:
    for _ in range(3):
        for _ in stepwatch.steps(anew()):
            pass
    found = [(epoch["epoch"], epoch["steps"]) for epoch in recorded.report["epochs"]]
    assert found == [(0, 2), (1, 2), (2, 2)]


def test_epochs_begin_with_the_recording(recorded: Recording, tmp_path: Path) -> None:
    for number in range(2):
        for _ in stepwatch.steps([1, 2]):
            pass
        if number == 0:
            assert [epoch["epoch"] for epoch in recorded.report["epochs"]] == [0]
            stepwatch.start(out=tmp_path / "second")
    run = stepwatch.stop()
    assert run is not None
    assert [epoch["epoch"] for epoch in run.report().to_dict()["epochs"]] == [0]


def test_looks_like_the_iterable() -> None:
    steps = stepwatch.steps(Loader(3))
    assert len(steps) == 3
    assert steps.batch_size == 4
    assert steps
    assert not stepwatch.steps([])
    assert operator.length_hint(iter(stepwatch.steps([1, 2]))) == 2
    assert stepwatch.steps(itertools.count())
    with pytest.raises(TypeError):
        len(stepwatch.steps(itertools.count()))
    with pytest.raises(AttributeError):
        _ = steps.nothing
    assert repr(stepwatch.steps([1])) == "stepwatch.steps([1])"
    assert repr(stepwatch.data((1,))) == "stepwatch.data((1,))"
    assert list(pickle.loads(pickle.dumps(stepwatch.steps([1, 2])))) == [1, 2]
    assert weakref.ref(steps)() is steps
    assert list(zip(stepwatch.data("ab"), stepwatch.data("cd"))) == [("a", "c"), ("b", "d")]

    class OldStyle:
        def __getitem__(self, index: int) -> int:
            if index > 2:
                raise IndexError
            return index

    old: Any = OldStyle()
    assert list(stepwatch.data(old)) == [0, 1, 2]


@pytest.mark.parametrize("make", [stepwatch.steps, stepwatch.data])
def test_wrong_arguments(make: Any) -> None:
    with pytest.raises(TypeError, match="'int' object is not iterable"):
        make(3)
    with pytest.raises(TypeError):
        make()
    with pytest.raises(TypeError):
        make([], [])
    with pytest.raises(TypeError, match="not an iterator"):
        next(make([]))


def test_data_makes_no_steps(recorded: Recording) -> None:
    assert list(stepwatch.data(Loader(3))) == [0, 1, 2]
    assert "count" not in recorded.steps
    assert recorded.calls("data_wait") == 4
    assert recorded.total_ms("data_wait") >= 6


def test_data_within_a_step(recorded: Recording) -> None:
    with stepwatch.step():
        assert sum(stepwatch.data(Loader(3))) == 3
    assert recorded.steps["count"] == 1
    assert phase(recorded, "data_wait") >= 6


def test_steps_by_hand(recorded: Recording) -> None:
    for _ in range(3):
        with stepwatch.step():
            pass
    error = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught, stepwatch.step():
        raise error
    assert caught.value is error
    assert (recorded.steps["count"], recorded.steps["incomplete"]) == (4, 1)
    assert recorded.steps["unit"] == "manual"


def test_steps_within_steps_are_harmless(recorded: Recording) -> None:
    outer = stepwatch.step()
    with outer, stepwatch.step():
        pass
    for _ in stepwatch.steps([1, 2]):
        for _ in stepwatch.steps([1, 2]):
            pass
    step = stepwatch.step()
    step.__exit__(None, None, None)
    with step, step:
        pass
    assert recorded.steps["count"] > 0
    assert recorded.report["notes"] is not None


def test_leaving_late_does_not_cut_a_later_step(recorded: Recording) -> None:
    left = iter(stepwatch.steps([1, 2, 3]))
    next(left)
    with stepwatch.step():
        del left
        gc.collect()
    # The loop's step was cut by the one by hand, which itself is whole.
    assert (recorded.steps["count"], recorded.steps["incomplete"]) == (2, 1)


def test_close(recorded: Recording) -> None:
    closed = []

    def generate() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.append(1)

    batches = iter(stepwatch.steps(generate()))
    next(batches)
    batches.close()
    assert closed == [1]
    assert list(batches) == []
    batches.close()
    assert (recorded.steps["count"], recorded.steps["incomplete"]) == (1, 1)


def test_threads_have_steps_of_their_own(recorded: Recording) -> None:
    def work() -> None:
        for _ in stepwatch.steps(range(100)):
            pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    by_thread = recorded.steps["by_thread"]
    assert sum(row["count"] for row in by_thread) == 300
    assert sum(row["incomplete"] for row in by_thread) == 0


def test_not_recording() -> None:
    stepwatch.stop()
    assert list(stepwatch.steps([1, 2])) == [1, 2]
    assert list(stepwatch.data([1, 2])) == [1, 2]
    with stepwatch.step():
        pass


def test_types_are_kept() -> None:
    def numbers() -> Iterable[int]:
        return [1, 2]

    total = 0
    for number in stepwatch.steps(numbers()):
        total += number  # mypy knows that it is an int
    assert total == 3


def test_cycles_are_collected() -> None:
    class Holder:
        batches: Any = None

        def __iter__(self) -> Iterator[int]:
            return iter([1])

    holder = Holder()
    holder.batches = stepwatch.steps(holder)
    reference = weakref.ref(holder)
    del holder
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("wrap", [stepwatch.steps, stepwatch.data, stepwatch.Profiler().steps])
def test_a_loader_that_closes_its_own_pass(wrap: Any) -> None:
    passes: list[Any] = []

    def batches() -> Iterator[int]:
        with contextlib.suppress(ValueError):  # it is running
            passes[0].close()
        yield 1

    passes.append(iter(wrap(batches())))
    assert next(passes[0]) == 1
    assert list(passes[0]) == []
