"""What times the stages of a loader: objects of C in the place of the program's own."""

from __future__ import annotations

import copy
import functools
import operator
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import _core

from .conftest import load

GETITEM, TRANSFORM, COLLATE, FETCH, WAIT = 1, 2, 3, 4, 8
NONE = 2**32 - 1


Trace = load("test_format_spec").Trace


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    stepwatch.stop()
    stepwatch.start(out=tmp_path / "run", quiet=True)
    yield tmp_path / "run"
    stepwatch.stop()


def stages(folder: Path) -> dict[tuple[str, int, int, str], tuple[int, ...]]:
    """Stop, and return the values of the stages by their keys."""
    stepwatch.stop()
    (file,) = folder.glob("*.stepwatch")
    trace = Trace(file.read_bytes())
    names, _ = trace.names()
    return {
        (names[row.key[0]], row.key[1], row.key[2], names[row.key[3]]): row.value
        for row in trace.rows(11).values()
    }


class Data:
    """Everything that a dataset may be asked."""

    def __init__(self) -> None:
        self.left = 3

    def __getitem__(self, index: int) -> int:
        if index < 0:
            raise IndexError("before the first")
        return index * 2

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [self[index] for index in indices]

    def __len__(self) -> int:
        return 7

    def __iter__(self) -> Data:
        return self

    def __next__(self) -> int:
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


def test_calls_and_times(folder: Path) -> None:
    stage = _core.stage("train", 3, FETCH, "fetch")
    for _ in range(5):
        assert stage.run(sum, [1, 2], start=3) == 6
    assert stage.add(100, 300) == 300
    assert stage.add(100, 150, 20) == 150
    assert (stage.loader, stage.worker, stage.kind, stage.name) == ("train", 3, FETCH, "fetch")
    assert (stage.calls, stage.begin, stage.end, stage.cpu_ns) == (7, 100, 150, 20)
    waits = _core.stage("train", None, WAIT, "wait")
    assert waits.worker == NONE
    begin = _core.now()
    end = waits.add(begin)
    assert end >= begin
    unused = _core.stage("train", None, COLLATE, "collate")
    assert unused.calls == 0
    found = stages(folder)
    assert set(found) == {("train", 3, FETCH, "fetch"), ("train", NONE, WAIT, "wait")}
    calls, ticks, cpu_ns, shortest, longest = found["train", 3, FETCH, "fetch"]
    assert calls == 7
    assert 0 < shortest <= 50
    assert shortest <= longest <= ticks
    assert cpu_ns > 0
    assert found["train", NONE, WAIT, "wait"] == (1, end - begin, 0, end - begin, end - begin)


def test_a_stage_that_is_gone_is_kept(folder: Path) -> None:
    stage = _core.stage("train", 0, FETCH, "fetch")
    stage.add(1, 11)
    del stage
    assert stages(folder) == {("train", 0, FETCH, "fetch"): (1, 10, 0, 10, 10)}


def test_a_new_recording_counts_anew(tmp_path: Path, folder: Path) -> None:
    stage = _core.stage("train", 0, FETCH, "fetch")
    stage.add(1, 11)
    assert stages(folder) == {("train", 0, FETCH, "fetch"): (1, 10, 0, 10, 10)}
    stage.add(1, 500)
    assert stage.run(len, "abc") == 3
    stepwatch.start(out=tmp_path / "other", quiet=True)
    stage.add(1, 6)
    assert stages(tmp_path / "other") == {("train", 0, FETCH, "fetch"): (1, 5, 0, 5, 5)}


class Fetcher:
    """As torch makes a batch."""

    def __init__(self, dataset: Any, collate_fn: Any) -> None:
        self.dataset, self.collate_fn = dataset, collate_fn

    def fetch(self, index: Any) -> Any:
        return self.collate_fn([self.dataset[i] for i in index])


@pytest.mark.parametrize("kind", [list, tuple, iter])
def test_short_samples_are_timed_now_and_then(folder: Path, kind: Any) -> None:
    getitem, collate, fetch = (
        _core.stage("train", None, number, name)
        for number, name in ((GETITEM, "getitem"), (COLLATE, "sum"), (FETCH, "fetch"))
    )
    data = [3] * 10
    fetcher = Fetcher(_core.timed(data, getitem), _core.timed(sum, collate))
    makes: Any = _core.timed(fetcher, fetch, {}, fetcher.dataset, collate)
    looked_at = 0
    for _ in range(100):
        assert makes.fetch(kind(range(10))) == 30
        looked_at += type(fetcher.dataset) is not list
    # The first eight, the ninth tells that they are short, and then one in sixteen. Of an iterator
    # nobody knows how many there are.
    assert looked_at == (100 if kind is iter else 8 + 6)
    found = stages(folder)
    samples, batches = (
        found["train", NONE, GETITEM, "getitem"],
        found["train", NONE, FETCH, "fetch"],
    )
    assert (samples[0], batches[0], found["train", NONE, COLLATE, "sum"][0]) == (1000, 100, 100)
    assert 0 < samples[1] <= batches[1]
    assert 0 < samples[3] <= samples[4]
    assert samples[1] + found["train", NONE, COLLATE, "sum"][1] <= batches[1]


def test_samples_that_get_long_are_timed_each(folder: Path) -> None:
    class Slows:
        def __getitem__(self, index: int) -> int:
            if index >= 20:
                time.sleep(0.001)
            return index

    getitem, collate, fetch = (
        _core.stage("train", None, number, name)
        for number, name in ((GETITEM, "getitem"), (COLLATE, "sum"), (FETCH, "fetch"))
    )
    fetcher = Fetcher(_core.timed(Slows(), getitem), _core.timed(sum, collate))
    makes: Any = _core.timed(fetcher, fetch, {}, fetcher.dataset, collate)
    for batch in range(30):
        makes.fetch([batch, batch])
        if batch < 20:
            continue
        assert (type(fetcher.dataset) is Slows) == (batch == 20)
    assert stages(folder)["train", NONE, GETITEM, "getitem"][0] == 60


@pytest.mark.usefixtures("folder")
def test_a_sample_that_fails_in_a_batch() -> None:
    getitem, collate, fetch = (
        _core.stage("train", None, number, name)
        for number, name in ((GETITEM, "getitem"), (COLLATE, "sum"), (FETCH, "fetch"))
    )
    fetcher = Fetcher(_core.timed([1, 2], getitem), _core.timed(sum, collate))
    makes: Any = _core.timed(fetcher, fetch, {}, fetcher.dataset, collate)
    for _ in range(12):
        assert makes.fetch([0, 1]) == 3
    with pytest.raises(IndexError, match="list index out of range"):
        makes.fetch([0, 5])
    assert makes.fetch([0, 1]) == 3
    assert getitem.calls == 26


@pytest.mark.usefixtures("folder")
def test_stands_for_its_target() -> None:
    data: Any = Data()
    stage = _core.stage("train", 0, GETITEM, "getitem")
    stand_in: Any = _core.timed(data, stage)
    assert stand_in[4] == 8
    assert stand_in.__getitems__([1, 2]) == [2, 4]
    assert (len(stand_in), stand_in.left, bool(stand_in)) == (7, 3, True)
    assert issubclass(stand_in.__class__, Data)
    assert stand_in == data
    assert hash(stand_in) == hash(data)
    assert (repr(stand_in), str(stand_in)) == (repr(data), str(data))
    stand_in.left = 2
    assert data.left == 2
    assert iter(stand_in) is stand_in
    assert list(stand_in) == [1, 0]
    with pytest.raises(AttributeError, match="'Data' object has no attribute 'nothing'"):
        _ = stand_in.nothing
    with pytest.raises(IndexError, match="before the first") as raised:
        stand_in[-1]
    assert [entry.name for entry in raised.traceback][-1] == "__getitem__"
    with pytest.raises(TypeError, match="'Data' object is not callable"):
        stand_in()
    with pytest.raises(TypeError, match="'int' object is not an iterator"):
        next(_core.timed(3, stage))
    assert stage.calls == 1 + 1 + 2 + 1 + 1  # The end is no item.


@pytest.mark.usefixtures("folder")
def test_copies_are_the_target() -> None:
    stage = _core.stage("train", 0, TRANSFORM, "abs")
    stand_in = _core.timed(operator.neg, stage)
    assert stand_in(3) == -3
    assert pickle.loads(pickle.dumps(stand_in)) is operator.neg
    assert copy.copy(stand_in) is operator.neg
    assert copy.deepcopy([stand_in]) == [operator.neg]
    assert stand_in == _core.timed(operator.neg, stage)
    assert functools.reduce(operator.add, map(stand_in, [1, 2])) == -3


@pytest.mark.usefixtures("folder")
def test_methods_of_classes() -> None:
    class Base:
        def __call__(self, value: int, *, more: int = 0) -> int:
            "Adds."
            return value + more

    class Child(Base):
        def __call__(self, value: int, *, more: int = 0) -> int:
            return super().__call__(value, more=more) * 2

    class Other(Base):
        pass

    before = vars(Base)["__call__"]
    for kind in (Base, Child):
        setattr(kind, "__call__", _core.timed_method(vars(kind)["__call__"]))  # noqa: B010
    method: Any = Base.__call__
    assert method.__wrapped__ is before
    assert (method.__name__, method.__doc__) == ("__call__", "Adds.")
    base, child, other = Base(), Child(), Other()
    kinds: tuple[type, ...] = (Base, Child)
    counted = {kind: _core.stage("train", 0, TRANSFORM, kind.__name__) for kind in kinds}
    assert _core.stage_context() is None
    assert (base(1), child(1, more=2), other(3)) == (1, 6, 3)
    assert all(stage.calls == 0 for stage in counted.values())

    def make() -> tuple[int, int, int]:
        assert _core.stage_context() is counted
        return base(1), child(1, more=2), other(3)

    fetch = _core.stage("train", 0, FETCH, "fetch")
    assert _core.timed(make, fetch, counted)() == (1, 6, 3)
    assert _core.stage_context() is None
    # What a transform calls is part of it, and what nobody asked for is not counted.
    assert {kind.__name__: stage.calls for kind, stage in counted.items()} == {
        "Base": 1,
        "Child": 1,
    }
    assert fetch.calls == 1
    assert pickle.loads(pickle.dumps(operator.neg)) is operator.neg


def test_an_exception_ends_what_it_leaves(folder: Path) -> None:
    section = _core.section("augment", "augment")
    transform = _core.stage("train", None, TRANSFORM, "bad", section)
    fetch = _core.stage("train", None, FETCH, "fetch")

    def bad() -> None:
        raise ValueError("bad")

    def make() -> None:
        with pytest.raises(ValueError, match="bad"):
            transform.run(bad)
        transform.run(time.sleep, 0.001)
        transform.run(len, "")
        raise KeyError("left")

    with pytest.raises(KeyError):
        _core.timed(make, fetch, {})()
    assert (transform.calls, fetch.calls) == (3, 1)
    assert _core.stage_context() is None
    stepwatch.stop()
    run = stepwatch.open(folder)
    # Only what follows a long call has an event of its own.
    assert [(row["name"], row["calls"], row["errors"]) for row in run.sections] == [
        ("augment", 1, 0)
    ]


def test_nothing_is_recorded_nothing_is_counted() -> None:
    stepwatch.stop()
    stage = _core.stage("train", 0, FETCH, "fetch")
    assert stage.run(len, "ab") == 2
    assert stage.add(1, 2) == 2
    assert _core.timed(len, stage)("abc") == 3
    assert stage.calls == 0


def test_wrong_calls_raise() -> None:
    core: Any = _core
    stage = core.stage("train", 0, FETCH, "fetch")
    for kind in (0, 14, -1):
        with pytest.raises(ValueError, match=f"there is no stage of kind {kind}"):
            core.stage("train", 0, kind, "x")
    with pytest.raises(TypeError, match="must be str"):
        core.stage(b"train", 0, FETCH, "x")
    with pytest.raises(TypeError, match="section must be a section or None, not str"):
        core.stage("train", 0, FETCH, "x", "augment")
    with pytest.raises(OverflowError):
        core.stage("train", -1, FETCH, "x")
    with pytest.raises(TypeError, match="takes 1 to 3 arguments, 0 given"):
        stage.add()
    with pytest.raises(TypeError):
        stage.add("now")
    with pytest.raises(TypeError, match="needs something to call"):
        stage.run()
    with pytest.raises(TypeError, match=r"must be stepwatch\._core\.stage, not int"):
        core.timed(len, 3)
    with pytest.raises(TypeError, match="must be dict, not list"):
        core.timed(len, stage, [])
    with pytest.raises(TypeError, match="'int' object cannot be called"):
        core.timed_method(3)
    assert repr(stage) == "<stage fetch of train: 0 calls>"
