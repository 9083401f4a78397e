"""Sweeps without a framework: calls, plain iterables, statistics."""

from __future__ import annotations

import json
import math
import os
import random
import statistics
import sys
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import _core
from stepwatch._sweeps._batches import Sizes, bytes_of
from stepwatch._sweeps._passes import Passes, Setting
from stepwatch._sweeps.loader import _Bench, _candidates, _Row

MIB = 1048576


# --- Statistics --------------------------------------------------------------------------


def test_statistics_are_those_of_the_library() -> None:
    values = array("d", [random.Random(7).expovariate(3) for _ in range(101)])
    found = _core.summarize(values)
    assert found["count"] == 101
    assert found["total"] == pytest.approx(math.fsum(values), rel=1e-12)
    assert found["mean"] == pytest.approx(statistics.fmean(values), rel=1e-12)
    assert found["std"] == pytest.approx(statistics.stdev(values), rel=1e-9)
    assert (found["min"], found["max"]) == (min(values), max(values))
    ordered = sorted(values)
    assert found["p50"] == ordered[50]
    assert found["p90"] == ordered[90]
    assert found["p99"] == ordered[99]


def test_what_is_not_known_is_none() -> None:
    empty = _core.summarize(array("d"))
    assert empty == {"count": 0, "total": 0.0, **dict.fromkeys(
        ("mean", "std", "min", "max", "p50", "p90", "p99")
    )}  # fmt: skip
    one = _core.summarize(array("d", [2.0]))
    assert one["std"] is None
    assert one["p99"] == one["mean"] == 2.0


@pytest.mark.parametrize("wrong", [array("f", [1.0]), array("q", [1]), b"12345678"])
def test_only_doubles_are_taken(wrong: Any) -> None:
    with pytest.raises(TypeError, match="doubles"):
        _core.summarize(wrong)


def test_noise_leaves_out_what_a_round_adds_to_all() -> None:
    rows = [[1.0, 1.4, 1.2], [2.1, 2.5, 2.3], [3.0, 3.4, 3.2]]
    assert _core.rounds_noise(rows) == pytest.approx(0.0, abs=1e-12)
    # Residuals are ±0.05 in two columns: 4 · 0.0025 over 2 degrees of freedom.
    rows = [[0.0, 0.1, 0.05], [0.1, 0.0, 0.05]]
    expected = 4.303 * math.sqrt(2 * (4 * 0.0025 / 2) / 3)
    assert _core.rounds_noise(rows) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rows", [[], [[1.0, 2.0]], [[1.0], [2.0]]])
def test_noise_needs_settings_and_rounds(rows: list[list[float]]) -> None:
    assert _core.rounds_noise(rows) is None


def test_rows_of_one_length() -> None:
    with pytest.raises(ValueError, match="one length"):
        _core.rounds_noise([[1.0, 2.0], [1.0]])
    with pytest.raises(TypeError):
        _core.rounds_noise([["a"]])  # type: ignore[list-item]


def test_memory_of_processes() -> None:
    before = _core.resident([0])
    block = bytearray(64 * MIB)
    block[::4096] = bytes([1]) * len(block[::4096])
    assert _core.resident([0]) >= before + 32 * MIB
    peak = _core.resident_peak()
    assert peak is None or peak >= before + 32 * MIB
    assert _core.resident([0, 2**31 - 1]) == pytest.approx(_core.resident([0]), rel=0.2)
    available = _core.memory_available()
    assert available is None or available > 0
    assert _core.cpus_usable() > 0


# --- Calls -------------------------------------------------------------------------------


def test_calls_are_counted_and_timed() -> None:
    calls: list[tuple[Any, ...]] = []

    def f(*args: Any, **kwargs: Any) -> None:
        calls.append((args, kwargs))
        time.sleep(0.001)

    found = stepwatch.benchmark_callable(f, 1, "a", number=20, warmup=2, key=3)
    assert calls == [((1, "a"), {"key": 3})] * 22
    assert found["total_samples_profiled"] == 20
    assert found["warmup_calls"] == 2
    assert 0.001 <= found["min_processing_time"] <= found["avg_processing_time"]
    assert found["p50_processing_time"] <= found["p99_processing_time"]
    assert found["p99_processing_time"] <= found["max_processing_time"]
    assert found["avg_processing_time"] == pytest.approx(found["total_time"] / 20)
    assert found["throughput"] == 20 / found["total_time"]
    assert found["throughput"] == found["samples_per_second"] == found["calls_per_second"]
    assert found["first_processing_time"] >= 0.001
    assert f"{found['avg_processing_time']:.6f}"
    assert json.loads(json.dumps(found.to_dict())) == found
    assert "avg_processing_time" in repr(found)


def test_the_usual_number_of_calls() -> None:
    calls: list[int] = []
    found = stepwatch.benchmark_callable(calls.append, 1)
    assert len(calls) == 103
    assert found["total_samples_profiled"] == 100


def test_without_warm_up() -> None:
    found = stepwatch.benchmark_callable(int, number=1, warmup=0)
    assert found["first_processing_time"] is None
    assert found["std_processing_time"] is None


class UnusualError(Exception):
    """Nobody else raises this."""


def test_an_exception_is_the_functions_own() -> None:
    raised = UnusualError("third")
    left = [raised, None, None]

    def f() -> None:
        error = left.pop()
        if error is not None:
            raise error

    with pytest.raises(UnusualError) as caught:
        stepwatch.benchmark_callable(f, warmup=0)
    assert caught.value is raised
    assert not _core.train_aside()


def test_calls_are_one_section(recorded: Any) -> None:
    stepwatch.benchmark_callable(len, "abc", number=50)
    assert recorded.calls("benchmark_callable") == 1
    assert [row["name"] for row in recorded.report["sections"]] == ["benchmark_callable"]


async def coroutine() -> None:
    pass


@pytest.mark.parametrize(
    ("arguments", "keywords", "kind", "text"),
    [
        ((len, "a"), {"number": 0}, ValueError, "number must be at least 1, not 0"),
        ((len, "a"), {"number": 1.5}, TypeError, "number must be a whole number, not float"),
        ((len, "a"), {"number": True}, TypeError, "number must be a whole number, not bool"),
        ((len, "a"), {"warmup": -1}, ValueError, "warmup must be at least 0, not -1"),
        ((3,), {}, TypeError, "takes a function, not int"),
        ((coroutine,), {}, TypeError, "gives a coroutine"),
    ],
)
def test_wrong_arguments_of_calls(
    arguments: Any, keywords: Any, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        stepwatch.benchmark_callable(*arguments, **keywords)


def test_interrupts_stop_calls_of_c_functions() -> None:
    import signal

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            stepwatch.benchmark_callable(abs, 1, number=20_000_000)
    finally:
        signal.signal(signal.SIGALRM, before)


# --- Iterables ---------------------------------------------------------------------------


class Batches:
    """A loader of nobody's."""

    def __init__(self, count: int = 12) -> None:
        self.count, self.passes, self.given = count, 0, 0

    def __iter__(self) -> Iterator[list[int]]:
        self.passes += 1
        for number in range(self.count):
            self.given += 1
            random.random()
            yield [number, number, number]


def test_any_iterable_is_measured_as_it_is() -> None:
    random.seed(5)
    before = random.getstate()
    loader = Batches()
    found = stepwatch.benchmark_dataloader(loader, num_batches=6)
    assert random.getstate() == before
    assert (loader.passes, loader.given) == (1, 7)
    (row,) = found.rows
    assert found.best is row
    assert row["given"] is True
    assert row["workers"] is row["prefetch"] is None
    assert row["total_batches_profiled"] == 6
    assert row["avg_batch_size"] == 3
    assert row["throughput"] == pytest.approx(3 / row["avg_batch_time"])
    assert row["batches_per_second"] == pytest.approx(1 / row["avg_batch_time"])
    assert json.loads(json.dumps(found.to_dict()))["rows"] == found.rows
    assert repr(found) == found.table()
    assert "as given" in found.table()


def test_fewer_batches_than_asked_for() -> None:
    found = stepwatch.benchmark_dataloader(Batches(4))
    assert found.rows[0]["total_batches_profiled"] == 3
    assert found.notes == ["The loader has fewer than 20 batches."]


def test_a_list_of_batches() -> None:
    found = stepwatch.benchmark_dataloader([["a", "b"]] * 5, num_batches=3)
    assert found.rows[0]["avg_batch_size"] == 2
    assert found.rows[0]["avg_batch_bytes"] == 2


def test_one_batch() -> None:
    found = stepwatch.benchmark_dataloader([[1, 2]])
    row = found.rows[0]
    assert row["total_batches_profiled"] == 1
    assert row["avg_batch_time"] == row["first_batch_time"]
    assert row["std_batch_time"] is None
    assert "only one batch" in found.table()


def test_what_cannot_be_counted_has_no_throughput() -> None:
    row = stepwatch.benchmark_dataloader([object()] * 5, num_batches=2).rows[0]
    assert row["throughput"] is row["avg_batch_size"] is None
    assert row["batches_per_second"] > 0


def test_no_batches() -> None:
    with pytest.raises(ValueError, match="gives no batches: there is nothing to measure"):
        stepwatch.benchmark_dataloader([])


def test_an_iterator_is_not_used_up() -> None:
    source = (number for number in range(3))
    with pytest.raises(TypeError, match="this generator is an iterator, which measuring it would"):
        stepwatch.benchmark_dataloader(source)
    with pytest.raises(TypeError, match="this list_iterator is an iterator"):
        stepwatch.benchmark_dataloader(iter([[1]]))
    assert list(source) == [0, 1, 2]


@pytest.mark.parametrize(
    ("keywords", "kind", "text"),
    [
        ({"num_batches": 0}, ValueError, "num_batches must be at least 1"),
        ({"num_batches": None}, TypeError, "num_batches must be a whole number, not NoneType"),
        ({"workers": [0, -1]}, ValueError, "workers must be at least 0, not -1"),
        ({"prefetch": 0}, ValueError, "prefetch must be at least 1, not 0"),
        ({"workers": "2"}, TypeError, "workers must be a whole number, not str"),
        ({"rounds": 0}, ValueError, "rounds must be at least 1"),
        ({"budget_s": 0}, ValueError, "budget_s must be more than 0 seconds"),
        ({"budget_s": math.nan}, ValueError, "budget_s must be more than 0 seconds"),
        ({"budget_s": "1"}, TypeError, "budget_s must be a number of seconds"),
        ({"workers": 2}, TypeError, "a list has no workers or prefetch to set"),
    ],
)
def test_wrong_arguments_of_loaders(keywords: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        stepwatch.benchmark_dataloader([[1]], **keywords)


def test_what_is_no_loader() -> None:
    with pytest.raises(TypeError, match="benchmark_dataloader takes a loader, not int"):
        stepwatch.benchmark_dataloader(3)


def test_a_loader_that_raises() -> None:
    raised = UnusualError("later")

    class Fails(Batches):
        def __iter__(self) -> Iterator[list[int]]:
            yield [1]
            random.random()
            raise raised

    random.seed(5)
    before = random.getstate()
    with pytest.raises(UnusualError) as caught:
        stepwatch.benchmark_dataloader(Fails())
    assert caught.value is raised
    assert random.getstate() == before
    assert not _core.train_aside()


def test_a_pass_is_ended_at_once() -> None:
    ended: list[bool] = []

    class Ends(Batches):
        def __iter__(self) -> Iterator[list[int]]:
            try:
                while True:
                    yield [1]
            finally:
                ended.append(True)

    stepwatch.benchmark_dataloader(Ends(), num_batches=2)
    assert ended == [True]


def test_a_budget_that_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter(range(1000))
    monkeypatch.setattr("stepwatch._sweeps.loader.time.monotonic", lambda: float(next(moments)))
    found = stepwatch.benchmark_dataloader(Batches(), budget_s=3)
    assert 1 <= found.rows[0]["total_batches_profiled"] < 11
    assert "The time was over" in found.table()


# --- Samples in a batch -------------------------------------------------------------------


class Shape:
    def __init__(self, *shape: int) -> None:
        self.shape = shape
        self.nbytes = 4 * math.prod(shape)


@pytest.mark.parametrize(
    ("batch", "expected", "size"),
    [
        (Shape(6, 3), None, 6),
        ([Shape(6, 3), Shape(6)], None, 6),
        ((Shape(6, 3), Shape(6)), 6, 6),
        ({"x": Shape(6, 3), "n": 4}, None, 6),
        ({"text": ["a", "b"], "y": Shape(2)}, None, 2),
        (["a", "b", "c"], None, 3),
        (["a", "b", "c"], 3, 3),
        ((["a", "b"], Shape(2)), None, 2),
        ([{"x": Shape(3, 8, 8)}] * 5, None, 5),
        ([(Shape(3, 8, 8), 1)] * 5, None, 5),
        (((Shape(3, 8), Shape(3, 8), Shape(3, 8), Shape(3, 8)), (1, 2, 3, 4)), None, 4),
        ([Shape(3, 8, 8)] * 4, 4, 4),
        ([[Shape(6, 2), Shape(6)], Shape(6)], 6, 6),
        (Shape(), None, None),
        (None, None, None),
        (3, None, None),
        ({}, None, None),
    ],
)
def test_samples_of_a_batch(batch: Any, expected: int | None, size: int | None) -> None:
    assert Sizes(expected).of(batch) == size


def test_all_batches_are_counted_the_same_way() -> None:
    sizes = Sizes(4)
    assert sizes.of([Shape(3, 8)] * 4) == 4
    assert sizes.of([Shape(3, 8)] * 2) == 2  # The last one.


def test_bytes_of_a_batch() -> None:
    assert bytes_of([Shape(2, 3), {"a": Shape(5), "b": b"123"}, ("xy", 7, None)]) == 24 + 20 + 5


# --- Settings ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cores", "given", "length", "workers"),
    [
        (6.5, Setting(3, 4), None, [3, 0, 1, 2, 4, 6]),
        (2.0, Setting(0, None), None, [0, 1, 2]),
        (0.5, Setting(0, None), None, [0, 1]),
        (64.0, Setting(0, None), 10, [0, 1, 2, 4, 5]),
        (8.0, Setting(16, 2), 1000, [16, 0, 1, 2, 4, 8]),
    ],
)
def test_numbers_of_workers_that_are_tried(
    monkeypatch: pytest.MonkeyPatch,
    cores: float,
    given: Setting,
    length: int | None,
    workers: list[int],
) -> None:
    monkeypatch.setattr(_core, "cpus_usable", lambda: cores)
    found = list(dict.fromkeys(_candidates(given, length)))
    assert [setting.workers for setting in found] == workers
    assert found[0] == given
    assert {setting.prefetch for setting in found if setting.workers} == {given.prefetch or 2}
    assert all(setting.prefetch is None for setting in found if not setting.workers)


def best_of(*measured: tuple[int, list[float]]) -> tuple[int, list[int]]:
    bench = _Bench.__new__(_Bench)
    bench.rows = {}
    for workers, rounds in measured:
        row = _Row(Setting(workers, 2 if workers else None))
        row.rounds = rounds
        row.times.extend(rounds)
        bench.rows[row.setting] = row
    best, equal = bench.best()
    return best.setting.workers or 0, sorted(row.setting.workers or 0 for row in equal)


def test_the_fastest_is_best_where_it_stands_out() -> None:
    assert best_of(
        (0, [1.00, 1.02, 0.99]), (2, [0.52, 0.51, 0.50]), (4, [0.30, 0.31, 0.30])
    ) == (4, [4])  # fmt: skip


def test_of_equals_the_cheapest_is_best() -> None:
    assert best_of(
        (0, [1.00, 1.02, 0.99]), (2, [0.31, 0.30, 0.32]), (4, [0.30, 0.31, 0.30])
    ) == (2, [2, 4])  # fmt: skip


def test_noise_makes_equals() -> None:
    assert best_of((1, [1.0, 2.0, 1.1]), (4, [0.9, 1.0, 1.6])) == (1, [1, 4])


def test_a_slow_round_is_no_noise() -> None:
    assert best_of((1, [1.0, 3.0, 1.0]), (4, [0.8, 2.4, 0.8])) == (4, [4])


def test_rounds_go_on_while_noise_hides_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounds_of(*times: list[float]) -> list[int]:
        bench = _Bench(Passes(Batches(), "test"), 6, 2, 60.0)
        for workers in range(len(times)):
            row = bench.rows[Setting(workers, 2)] = _Row(Setting(workers, 2))
            row.rounds.append(times[workers][0])
            row.times.append(times[workers][0])

        def measure(setting: Setting, *_: Any) -> None:
            row = bench.rows[setting]
            took = times[setting.workers or 0]
            row.rounds.append(took[len(row.rounds) % len(took)])
            row.times.append(row.rounds[-1])

        monkeypatch.setattr(bench, "measure", measure)
        bench.more_rounds()
        return [len(row.rounds) for row in bench.rows.values()]

    assert rounds_of([1.0, 1.01], [0.5, 0.5]) == [2, 2]
    # The faster one may be so by chance, for all that two rounds can tell.
    assert rounds_of([1.0, 1.0], [0.3, 0.8, 0.4]) == [4, 4]
    # Of equals nobody needs to know more.
    assert rounds_of([1.0, 1.0], [1.0, 1.01]) == [2, 2]
    # What is far behind is left out, but for the fastest three.
    assert rounds_of([9.0], [1.0, 1.0], [2.5, 2.5], [0.5, 0.5]) == [1, 2, 2, 2]


def test_one_round_wants_a_clear_gain() -> None:
    assert best_of((0, [1.0]), (2, [0.95])) == (0, [0, 2])
    assert best_of((0, [1.0]), (2, [0.80])) == (2, [2])


# --- Without torch -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["benchmark_training", "find_batch_size"])
def test_torch_is_named_where_it_is_missing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(RuntimeError, match=f"stepwatch.{name} needs torch, which cannot be"):
        getattr(stepwatch, name)(None, None)


def test_importing_them_imports_no_framework(build_dir: Path) -> None:
    import subprocess

    program = (
        "import sys, stepwatch; stepwatch.benchmark_dataloader; stepwatch.find_batch_size;"
        "print(sorted({'torch', 'numpy', 'jax'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(build_dir / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
