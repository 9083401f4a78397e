"""stepwatch.Profiler: what it counts, for whom, and that the program does not notice."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import gc
import inspect
import math
import pickle
import statistics
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

if TYPE_CHECKING:
    from stepwatch._core import ProfilerPath, ProfilerRow

    from .conftest import Recording


def row_of(profiler: stepwatch.Profiler, name: str) -> ProfilerRow:
    row = profiler.row(name)
    assert row is not None
    return row


def calls_by_path(profiler: stepwatch.Profiler) -> dict[tuple[str, ...], int]:
    return {tuple(row["path"]): row["calls"] for row in profiler.paths()}


def path_of(profiler: stepwatch.Profiler, *path: str) -> ProfilerPath:
    (found,) = [row for row in profiler.paths() if tuple(row["path"]) == path]
    return found


# --- Sections --------------------------------------------------------------------------


def test_settings_and_what_it_says() -> None:
    before = time.time_ns()
    profiler = stepwatch.Profiler("mine", values=5, memory=True)
    assert (profiler.name, profiler.enabled, profiler.memory) == ("mine", True, True)
    assert before <= profiler.started_ns <= time.time_ns()
    first = profiler.elapsed_s
    assert 0 <= first <= profiler.elapsed_s
    assert repr(profiler) == "<stepwatch.Profiler 'mine': 0 sections, 0 calls>"
    with profiler.section("load"):
        pass
    assert repr(profiler) == "<stepwatch.Profiler 'mine': 1 sections, 1 calls>"
    assert repr(profiler.section("load")) == "<section 'load' of the profiler 'mine': 1 calls>"
    profiler.enabled = False
    assert repr(profiler).endswith(", off>")
    assert stepwatch.Profiler().name == "profiler"
    with pytest.raises(ValueError, match="values should be 0 or more"):
        stepwatch.Profiler(values=-1)
    with pytest.raises(TypeError):
        stepwatch.Profiler("x", True)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        profiler.name = "other"  # type: ignore[misc]


def test_one_object_per_name() -> None:
    profiler, other = stepwatch.Profiler(), stepwatch.Profiler()
    load = profiler.section("load", category="data_loading")
    assert load is profiler.section("".join(["lo", "ad"]))
    assert load is not other.section("load")
    assert (load.name, load.category, load.phase) == ("load", "data_loading", None)
    assert load.profiler is profiler
    assert profiler.section("forward").phase == "forward"
    assert profiler.section("mine", phase="loss").phase == "loss"
    with pytest.raises(ValueError, match="no phase 'fwd'; did you mean 'forward'"):
        profiler.section("x", phase="fwd")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name must be str"):
        profiler.section(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="category must be str"):
        profiler.section("x", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="two values for 'name'"):
        profiler.section("x", name="y")  # type: ignore[misc]
    with pytest.raises(TypeError, match="no argument 'nme'"):
        profiler.section(nme="y")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="needs a name"):
        profiler.section()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes one function"):
        load(1, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        type(load)()


def test_nested_sections_have_inclusive_and_self_time() -> None:
    profiler = stepwatch.Profiler()
    with profiler.section("outer"):
        time.sleep(0.01)
        for _ in range(3):
            with profiler.section("inner", category="inside"):
                time.sleep(0.01)
    outer, inner = row_of(profiler, "outer"), row_of(profiler, "inner")
    assert (outer["calls"], inner["calls"]) == (1, 3)
    assert inner["total_ns"] == inner["self_ns"] >= 30_000_000
    assert outer["total_ns"] >= inner["total_ns"] + 10_000_000
    assert outer["self_ns"] == outer["total_ns"] - inner["total_ns"]
    assert (outer["category"], inner["category"]) == (None, "inside")
    assert calls_by_path(profiler) == {("outer",): 1, ("outer", "inner"): 3}
    assert [row["name"] for row in profiler.rows()] == ["outer", "inner"]


def test_one_name_on_several_paths() -> None:
    profiler = stepwatch.Profiler()
    for outer, times in (("train", 2), ("validate", 5)):
        with profiler.section(outer):
            for _ in range(times):
                with profiler.section("load"):
                    pass
    with profiler.section("load"):
        pass
    assert profiler.calls("load") == 8
    assert calls_by_path(profiler) == {
        ("train",): 1,
        ("validate",): 1,
        ("train", "load"): 2,
        ("validate", "load"): 5,
        ("load",): 1,
    }
    total = sum(row["total_ns"] for row in profiler.paths() if row["name"] == "load")
    assert total == row_of(profiler, "load")["total_ns"]


def test_recursion_counts_every_call_and_the_outermost_time() -> None:
    profiler = stepwatch.Profiler()

    @profiler.profile
    def down(depth: int) -> None:
        if depth == 0:
            time.sleep(0.01)
        else:
            down(depth - 1)

    down(9)
    row = row_of(profiler, "down")
    values = profiler.values("down")
    assert (row["calls"], row["recursive_calls"], len(values)) == (10, 9, 10)
    # The calls end from the inside out: the last value is that of the outermost.
    assert row["total_ns"] == round(values[-1] * 1e9) == row["max_ns"]
    assert row["self_ns"] == pytest.approx(row["total_ns"], abs=20)
    assert calls_by_path(profiler) == {("down",): 10}


def test_mutual_recursion_does_not_count_twice() -> None:
    profiler = stepwatch.Profiler()

    def even(number: int) -> None:
        with profiler.section("even"):
            if number:
                odd(number - 1)

    def odd(number: int) -> None:
        with profiler.section("odd"):
            if number:
                even(number - 1)

    with profiler.section("top"):
        even(6)
    assert calls_by_path(profiler) == {
        ("top",): 1,
        ("top", "even"): 4,
        ("top", "even", "odd"): 3,
    }
    top, outer, inner = (row_of(profiler, name) for name in ("top", "even", "odd"))
    assert inner["total_ns"] <= outer["total_ns"] <= top["total_ns"]
    own = top["self_ns"] + outer["self_ns"] + inner["self_ns"]
    assert own == pytest.approx(top["total_ns"], abs=20)


def test_exceptions_are_counted_and_unchanged() -> None:
    profiler = stepwatch.Profiler()
    error = ValueError("as it was")
    with pytest.raises(ValueError, match="as it was") as caught, profiler.section("fails"):
        raise error
    assert caught.value is error
    assert error.__context__ is None

    @profiler.profile("also")
    def fails() -> None:
        raise error

    with pytest.raises(ValueError, match="as it was"):
        fails()
    for name in ("fails", "also"):
        row = row_of(profiler, name)
        assert (row["calls"], row["errors"]) == (1, 1)
    with profiler.section("fails"):
        pass
    row = row_of(profiler, "fails")
    assert (row["calls"], row["errors"]) == (2, 1)


def test_opened_and_closed_by_hand_and_by_exit_stacks() -> None:
    profiler = stepwatch.Profiler()

    class Fixture:
        def begin(self) -> None:
            profiler.section("held").__enter__()

        def end(self) -> None:
            profiler.section("held").__exit__(None, None, None)

    fixture = Fixture()
    fixture.begin()
    with contextlib.ExitStack() as stack:
        for number in range(3):
            stack.enter_context(profiler.section(f"stacked {number}"))
    fixture.end()
    fixture.end()  # one too many does nothing
    assert calls_by_path(profiler) == {
        ("held",): 1,
        ("held", "stacked 0"): 1,
        ("held", "stacked 0", "stacked 1"): 1,
        ("held", "stacked 0", "stacked 1", "stacked 2"): 1,
    }


def test_a_context_manager_of_the_program_around_a_section() -> None:
    profiler = stepwatch.Profiler()

    @contextlib.contextmanager
    def mine() -> Iterator[None]:
        with profiler.section("mine"):
            yield

    with mine(), profiler.section("inside"):
        pass
    assert calls_by_path(profiler) == {("mine",): 1, ("mine", "inside"): 1}


# --- Threads, generators, tasks --------------------------------------------------------


def test_threads_have_stacks_of_their_own() -> None:
    profiler = stepwatch.Profiler()
    ready = threading.Barrier(4)

    def work(name: str) -> None:
        ready.wait()
        for _ in range(2000):
            with profiler.section(name), profiler.section("inner"):
                pass

    threads = [threading.Thread(target=work, args=(f"thread {n}",)) for n in range(4)]
    with profiler.section("main"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    expected: dict[tuple[str, ...], int] = {("main",): 1}
    for number in range(4):
        expected[(f"thread {number}",)] = expected[(f"thread {number}", "inner")] = 2000
    assert calls_by_path(profiler) == expected
    assert profiler.calls("inner") == 8000
    assert len(profiler.values("inner")) == 8000


def test_many_threads_one_after_the_other() -> None:
    profiler = stepwatch.Profiler()
    section = profiler.section("short")

    def work() -> None:
        with section:
            pass

    for _ in range(300):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert calls_by_path(profiler) == {("short",): 300}


def test_rows_may_be_read_while_others_count() -> None:
    profiler = stepwatch.Profiler(values=100)
    stop = threading.Event()

    def work(number: int) -> None:
        turn = 0
        while not stop.is_set():
            with profiler.section(f"work {turn % 50}"), profiler.section(f"inner {number}"):
                turn += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    try:
        for turn in range(200):
            for row in (*profiler.rows(), *profiler.paths(), *profiler.rows(families=True)):
                assert row["calls"] > 0
                assert row["min_ns"] <= row["p50_ns"] <= row["p99_ns"] <= row["max_ns"]
            profiler.values("work 1")
            if turn % 20 == 0:
                profiler.reset()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_tasks_do_not_lie_within_each_other() -> None:
    profiler = stepwatch.Profiler()

    async def task(name: str) -> None:
        with profiler.section(name):
            await asyncio.sleep(0.001)
            with profiler.section("inner"):
                await asyncio.sleep(0.001)

    async def main() -> None:
        with profiler.section("main"):
            await asyncio.gather(*(task(f"task {number}") for number in range(3)))

    with profiler.section("all"):
        asyncio.run(main())
    expected: dict[tuple[str, ...], int] = {("all",): 1, ("all", "main"): 1}
    for number in range(3):
        expected[("all", f"task {number}")] = expected[("all", f"task {number}", "inner")] = 1
    assert calls_by_path(profiler) == expected
    # Together they took longer than the loop that ran them: nothing is less than 0.
    assert row_of(profiler, "all")["self_ns"] >= 0


def test_awaited_functions_lie_within_each_other() -> None:
    profiler = stepwatch.Profiler()

    @profiler.profile("inner")
    async def inner() -> int:
        await asyncio.sleep(0.001)
        return 3

    @profiler.profile
    async def outer() -> int:
        return await inner() + await inner()

    assert asyncio.run(outer()) == 6
    assert inspect.iscoroutinefunction(outer)
    assert calls_by_path(profiler) == {("outer",): 1, ("outer", "inner"): 2}
    assert row_of(profiler, "inner")["min_ns"] >= 1_000_000


def test_generators_count_while_they_run() -> None:
    profiler = stepwatch.Profiler()

    @profiler.profile("produce")
    def produce(count: int) -> Generator[int, None, str]:
        for number in range(count):
            with profiler.section("item"):
                time.sleep(0.002)
            yield number
        return "done"

    assert inspect.isgeneratorfunction(produce)
    with profiler.section("consume"):
        for _ in produce(3):
            with profiler.section("use"):
                time.sleep(0.02)
    produced = row_of(profiler, "produce")
    assert produced["calls"] == 1
    assert 6_000_000 <= produced["total_ns"] < row_of(profiler, "use")["total_ns"]
    assert calls_by_path(profiler) == {
        ("consume",): 1,
        ("consume", "use"): 3,
        ("consume", "produce"): 1,
        ("consume", "produce", "item"): 3,
    }
    left = produce(3)
    next(left)
    del left  # not gone through to its end: a call all the same
    gc.collect()
    assert profiler.calls("produce") == 2
    assert row_of(profiler, "produce")["errors"] == 0


def test_asynchronous_generators() -> None:
    profiler = stepwatch.Profiler()

    @profiler.profile("numbers")
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0)
            yield number

    async def main() -> list[int]:
        return [number async for number in numbers()]

    assert asyncio.run(main()) == [0, 1, 2]
    assert profiler.calls("numbers") == 1


def test_generators_with_open_sections_may_interleave_and_change_threads() -> None:
    profiler = stepwatch.Profiler()

    def held(name: str) -> Iterator[None]:
        with profiler.section(name):
            yield
            yield

    first, second = held("first"), held("second")
    next(first)
    next(second)
    list(first)
    thread = threading.Thread(target=lambda: list(second))
    thread.start()
    thread.join()
    assert (profiler.calls("first"), profiler.calls("second")) == (1, 1)
    with profiler.section("after"):
        pass
    assert ("after",) in calls_by_path(profiler)


# --- Decorators ------------------------------------------------------------------------


def test_decorated_functions_stay_what_they_are() -> None:
    profiler = stepwatch.Profiler()

    @profiler.profile
    def add(first: int, second: int = 2) -> int:
        """Add two numbers."""
        return first + second

    assert (add(1), add(1, second=5)) == (3, 6)
    assert (add.__name__, add.__doc__) == ("add", "Add two numbers.")
    assert str(inspect.signature(add)) == "(first: 'int', second: 'int' = 2) -> 'int'"
    assert profiler.calls("add") == 2

    @profiler.section("again")
    def again() -> int:
        return 4

    assert again() == 4
    assert profiler.calls("again") == 1

    made = profiler.profile(functools.partial(add, 1), name="partial", category="math")
    assert made() == 3
    assert row_of(profiler, "partial")["category"] == "math"
    assert profiler.calls("add") == 3
    with pytest.raises(TypeError, match="two names"):
        profiler.profile("a", name="b")
    with pytest.raises(TypeError, match="not a section"):
        type(add)(3, add)  # type: ignore[misc]


class Every:
    """A class with every kind of member."""

    def __init__(self, value: int) -> None:
        """Keep a value."""
        self.value = value

    def plain(self, more: int = 1) -> int:
        return self.value + more

    @staticmethod
    def static(value: int) -> int:
        return value

    @classmethod
    def made(cls) -> Every:
        return cls(7)

    @property
    def twice(self) -> int:
        return 2 * self.value

    def numbers(self) -> Iterator[int]:
        yield from range(self.value)

    async def later(self) -> int:
        return self.value

    def __call__(self) -> int:
        return self.value

    def __len__(self) -> int:
        return self.value


def test_methods_of_a_class() -> None:
    profiler = stepwatch.Profiler()
    signature = inspect.signature(Every.plain)

    class Derived(Every):
        pass

    assert profiler.methods(Every) is Every
    assert profiler.methods(Every) is Every  # once more changes nothing
    every = Derived.made()
    assert isinstance(every, Every)
    assert (every.plain(), every.static(3), every.twice, every(), len(every)) == (8, 3, 14, 7, 7)
    assert list(every.numbers()) == list(range(7))
    assert asyncio.run(every.later()) == 7
    assert inspect.signature(Every.plain) == signature
    assert Every.__init__.__doc__ == "Keep a value."
    names = ("__init__", "plain", "static", "made", "twice", "numbers", "later", "__call__")
    assert {row["name"]: row["calls"] for row in profiler.rows()} == {
        f"Every.{name}": 1 for name in names
    }
    assert pickle.loads(pickle.dumps(Every(3))).value == 3
    with pytest.raises(TypeError, match="decorates a class"):
        profiler.methods(3)  # type: ignore[type-var]


def test_each_profiler_counts_for_itself() -> None:
    first, second = stepwatch.Profiler("first"), stepwatch.Profiler("second")

    class Trainer:
        def step(self) -> None: ...

    for _ in range(2):
        first.methods(Trainer)
        second.methods(Trainer)
    Trainer().step()
    assert (first.calls("Trainer.step"), second.calls("Trainer.step")) == (1, 1)

    @first.profile("one")
    @first.profile("one")
    @first.profile("two")
    def function() -> None: ...

    function()
    assert (first.calls("one"), first.calls("two")) == (1, 1)


# --- Loops -----------------------------------------------------------------------------


class Loader:
    """Something that loads batches."""

    batch_size = 4

    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[int]:
        for number in range(3):
            time.sleep(0.002)
            yield number


def test_steps_and_waits() -> None:
    profiler = stepwatch.Profiler()
    loop = profiler.steps(Loader())
    assert (len(loop), loop.batch_size, bool(loop)) == (3, 4, True)
    for _ in range(2):
        for _ in loop:
            with profiler.section("work"):
                time.sleep(0.001)
    assert calls_by_path(profiler) == {
        ("step",): 6,
        ("step", "data_wait"): 6,
        ("step", "work"): 6,
    }
    assert row_of(profiler, "data_wait")["min_ns"] >= 2_000_000
    step = row_of(profiler, "step")
    parts = row_of(profiler, "data_wait")["total_ns"] + row_of(profiler, "work")["total_ns"]
    assert step["total_ns"] - step["self_ns"] == parts


def test_a_loop_that_is_left_has_no_last_step() -> None:
    profiler = stepwatch.Profiler()
    for number in profiler.steps(range(10)):
        if number == 4:
            break
    assert (profiler.calls("step"), profiler.calls("data_wait")) == (4, 5)
    with profiler.section("after"):
        pass
    assert ("after",) in calls_by_path(profiler)


def test_a_loader_that_fails() -> None:
    profiler = stepwatch.Profiler()

    def broken() -> Iterator[int]:
        yield 1
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        for _ in profiler.data(broken(), name="read"):
            pass
    row = row_of(profiler, "read")
    assert (row["calls"], row["errors"]) == (2, 1)
    assert profiler.section("read").phase == "data_wait"
    with pytest.raises(TypeError, match="not iterable"):
        profiler.data(3)  # type: ignore[arg-type]
    assert list(profiler.data([])) == []
    assert profiler.calls("data_wait") == 0


def test_steps_by_hand() -> None:
    profiler = stepwatch.Profiler()
    for number in range(3):
        with contextlib.suppress(ValueError), profiler.step(), profiler.section("work"):
            if number == 2:
                raise ValueError
    row = row_of(profiler, "step")
    assert (row["calls"], row["errors"]) == (3, 1)
    assert calls_by_path(profiler) == {("step",): 3, ("step", "work"): 3}
    profiler.enabled = False
    with profiler.step():
        pass
    assert profiler.calls("step") == 3


def test_a_step_within_itself_ends_the_outer_one() -> None:
    profiler = stepwatch.Profiler()
    step = profiler.step()
    with step, profiler.section("outer"), step, profiler.section("inner"):
        pass
    assert profiler.calls("step") == 2
    with profiler.section("after"):
        pass
    assert ("after",) in calls_by_path(profiler)  # nothing was left open


# --- Statistics ------------------------------------------------------------------------


def test_measurements_taken_elsewhere() -> None:
    profiler = stepwatch.Profiler()
    seconds = [0.001 * number for number in range(1, 101)]
    for value in seconds:
        profiler.add("op", value)
    row = row_of(profiler, "op")
    assert profiler.values("op") == pytest.approx(seconds)
    assert (row["calls"], row["errors"]) == (100, 0)
    assert row["total_ns"] == row["self_ns"] == 5_050_000_000
    assert (row["min_ns"], row["max_ns"], row["last_ns"]) == (1_000_000, 100_000_000, 100_000_000)
    assert row["mean_ns"] == pytest.approx(50_500_000)
    assert row["std_ns"] == pytest.approx(statistics.pstdev(seconds) * 1e9)
    for key, value in (("p50_ns", 50e6), ("p90_ns", 90e6), ("p95_ns", 95e6), ("p99_ns", 99e6)):
        assert row[key] == pytest.approx(value, rel=0.01)  # type: ignore[literal-required]
    assert [row["memory_bytes"], row["peak_bytes"], row["peak_how"]] == [None] * 3
    profiler.add("many", 2.0, count=4)
    many = row_of(profiler, "many")
    assert (many["calls"], many["total_ns"], many["mean_ns"]) == (4, 2_000_000_000, 5e8)
    assert profiler.values("many") == [0.5]


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 20])
def test_quantiles_of_few_calls_are_those_of_the_calls(count: int) -> None:
    profiler = stepwatch.Profiler()
    values = [(number * 7) % count + 1 for number in range(count)]
    for value in values:
        profiler.add("op", value)
    row = row_of(profiler, "op")
    for key, share in (("p50_ns", 0.5), ("p90_ns", 0.9), ("p99_ns", 0.99)):
        exact = sorted(values)[math.ceil(share * count) - 1]
        found = row[key] / 1e9  # type: ignore[literal-required]
        assert found == pytest.approx(exact, rel=0.01 if count > 8 else 1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("op", -1.0), "seconds should be from 0 to 1e9"),
        (("op", float("nan")), "seconds should be from 0 to 1e9"),
        (("op", float("inf")), "seconds should be from 0 to 1e9"),
        (("op", 1.0, 0), "count should be 1 or more, not 0"),
    ],
)
def test_wrong_measurements(arguments: Any, message: str) -> None:
    profiler = stepwatch.Profiler()
    with pytest.raises(ValueError, match=message):
        profiler.add(*arguments)
    with pytest.raises(ValueError, match=r"not -2\.5$"):
        profiler.add("op", seconds=-2.5)
    assert profiler.rows() == []


def test_rows_are_sorted_by_total() -> None:
    profiler = stepwatch.Profiler()
    for name, seconds in (("a", 1.0), ("b", 3.0), ("c", 2.0), ("d", 3.0)):
        profiler.add(name, seconds)
    profiler.section("never")
    assert [row["name"] for row in profiler.rows()] == ["b", "d", "c", "a"]
    assert [row["path"] for row in profiler.paths()] == [["b"], ["d"], ["c"], ["a"]]
    assert profiler.row("never") is profiler.row("unknown") is None
    assert (profiler.calls("never"), profiler.values("unknown")) == (0, [])
    with pytest.raises(TypeError, match="is a str"):
        profiler.calls(3)  # type: ignore[arg-type]


def test_the_newest_values_are_kept() -> None:
    profiler = stepwatch.Profiler(values=10)
    for number in range(37):
        profiler.add("op", float(number))
    assert profiler.values("op") == [float(number) for number in range(27, 37)]
    assert profiler.calls("op") == 37
    nothing = stepwatch.Profiler(values=0)
    nothing.add("op", 1.0)
    assert (nothing.values("op"), nothing.calls("op")) == ([], 1)


def test_ten_thousand_names() -> None:
    profiler = stepwatch.Profiler()
    for number in range(10_000):
        with profiler.section(f"epoch_{number}"), profiler.section("train"):
            pass
    rows = profiler.rows()
    assert len(rows) == 10_001
    assert profiler.calls("epoch_9999") == 1
    families = {row["name"]: row for row in profiler.rows(families=True)}
    assert set(families) == {"epoch_*", "train"}
    assert families["epoch_*"]["calls"] == 10_000
    epochs = [row for row in rows if row["name"] != "train"]
    for key in ("total_ns", "self_ns"):
        assert families["epoch_*"][key] == sum(row[key] for row in epochs)
    assert families["epoch_*"]["max_ns"] == max(row["max_ns"] for row in epochs)
    means = [row["mean_ns"] for row in epochs]
    assert families["epoch_*"]["mean_ns"] == pytest.approx(statistics.fmean(means))
    assert families["epoch_*"]["std_ns"] == pytest.approx(statistics.pstdev(means), rel=1e-6)
    assert len(profiler.paths()) == 20_000


def test_names_without_end_are_folded() -> None:
    profiler = stepwatch.Profiler(values=1)
    for number in range(70_000):
        profiler.add(f"batch_{number}", 0.001)
    profiler.add("another", 0.001)
    assert profiler.calls("batch_65535") == 1
    assert profiler.calls("batch_69999") == 0
    assert profiler.calls("batch_*") == 70_000 - 65_536
    assert profiler.calls("(more)") == 1


def test_families_without_end_are_folded_too() -> None:
    profiler = stepwatch.Profiler()
    for number in range(65_536):
        profiler.section(f"name {number}")
        profiler.counter(f"name {number}", 0)

    def name(number: int) -> str:  # each is of a family of its own
        return f"{number:016b}0".translate({0x30: "a1", 0x31: "b2"})

    for number in range(65_536):
        profiler.section(name(number))
        profiler.counter(name(number), 1)
    for number in range(5):
        profiler.add(name(65_536 + number) + "c3", 1.0)
        profiler.counter(name(65_536 + number) + "c3", 2)
    assert profiler.calls("(more)") == 5
    counters = profiler.counters()
    assert len(counters) == 2 * 65_536 + 1
    assert [value for _, value in counters["(more)"]] == [2.0] * 5


def test_what_was_called_inside_of_a_section() -> None:
    profiler = stepwatch.Profiler()
    with profiler.section("setup"), profiler.section("load"):
        pass
    for epoch in range(3):
        with profiler.section(f"epoch_{epoch}"):
            for part in ("train", "validate"):
                with profiler.section(part):
                    for _ in range(epoch + 6):
                        with profiler.section("load"):
                            pass
    rows = {row["name"]: row for row in profiler.rows(under="epoch_2")}
    assert {name: row["calls"] for name, row in rows.items()} == {
        "epoch_2": 1,
        "train": 1,
        "validate": 1,
        "load": 16,
    }
    paths = profiler.paths(under="epoch_2")
    loads = [row for row in paths if row["name"] == "load"]
    assert sorted(row["path"] for row in loads) == [
        ["epoch_2", "train", "load"],
        ["epoch_2", "validate", "load"],
    ]
    assert rows["load"]["total_ns"] == sum(row["total_ns"] for row in loads)
    assert rows["load"]["max_ns"] == max(row["max_ns"] for row in loads)
    assert rows["load"]["min_ns"] <= rows["load"]["p50_ns"] <= rows["load"]["max_ns"]
    assert profiler.rows(under="nothing") == profiler.paths(under="nothing") == []
    with pytest.raises(TypeError, match="not both"):
        profiler.rows(families=True, under="epoch_2")
    with pytest.raises(TypeError, match="under must be str"):
        profiler.rows(under=3)  # type: ignore[arg-type]


def test_series_and_marks() -> None:
    profiler = stepwatch.Profiler(values=4)
    for number in range(11):
        profiler.counter("loss", number / 2)
    profiler.mark("changed")
    series = profiler.counters()["loss"]
    assert [value for _, value in series] == [3.5, 4.0, 4.5, 5.0]
    moments = [moment for moment, _ in series]
    assert moments == sorted(moments)
    ((moment, text),) = profiler.marks()
    assert (text, moment >= moments[-1]) == ("changed", True)
    with pytest.raises(TypeError):
        profiler.counter("loss", "high")  # type: ignore[arg-type]
    profiler.enabled = False
    profiler.counter("loss", 1)
    profiler.mark("not kept")
    assert (len(profiler.counters()["loss"]), len(profiler.marks())) == (4, 1)


def test_all_values_may_be_kept() -> None:
    profiler = stepwatch.Profiler(values=sys.maxsize)
    for number in range(10):
        profiler.counter("loss", number)
        profiler.mark("text")
        profiler.add("op", number)
    assert len(profiler.counters()["loss"]) == len(profiler.marks()) == 10
    assert len(profiler.values("op")) == 10


# --- On, off, again --------------------------------------------------------------------


def test_switched_at_any_time() -> None:
    profiler = stepwatch.Profiler(enabled=False)
    section = profiler.section("work")

    @profiler.profile("function")
    def function() -> None: ...

    def both() -> None:
        with section:
            pass
        function()
        profiler.add("op", 1.0)
        assert list(profiler.steps([1, 2])) == [1, 2]

    both()
    assert profiler.rows() == []
    profiler.enabled = True
    both()
    counts = {row["name"]: row["calls"] for row in profiler.rows()}
    assert counts == {"work": 1, "function": 1, "op": 1, "step": 2, "data_wait": 2}
    with section:
        profiler.enabled = False
        both()  # the inner call was never opened, so its end is not that of the outer one
        assert profiler.calls("work") == 1
    assert profiler.calls("work") == 2  # it was open
    both()
    assert profiler.calls("work") == 2
    with pytest.raises(AttributeError):
        del profiler.enabled


def test_reset_and_what_is_open() -> None:
    profiler = stepwatch.Profiler()
    section = profiler.section("work")
    with section, profiler.section("inner"):
        time.sleep(0.02)
        with section:
            pass
        profiler.counter("loss", 1)
        before = profiler.started_ns
        profiler.reset()
        assert (profiler.rows(), profiler.paths(), profiler.counters()) == ([], [], {})
        assert profiler.started_ns > before
    assert calls_by_path(profiler) == {("work",): 1, ("work", "inner"): 1}
    assert row_of(profiler, "work")["total_ns"] < 20_000_000
    assert profiler.section("work") is section


def test_reset_with_very_many_open_calls() -> None:
    profiler = stepwatch.Profiler()

    def waits() -> Generator[None, None, None]:
        with profiler.section("task"):
            yield

    def thread() -> None:
        tasks = [waits() for _ in range(30_000)]
        for task in tasks:
            next(task)
        profiler.reset()
        for task in reversed(tasks):
            task.close()

    size = threading.stack_size(256 * 1024)
    try:
        one = threading.Thread(target=thread)
        one.start()
        one.join()
    finally:
        threading.stack_size(size)
    assert profiler.calls("task") == 30_000
    assert calls_by_path(profiler) == {("task",): 30_000}


def test_close_and_with() -> None:
    with stepwatch.Profiler("block") as profiler, profiler.section("work"):
        pass
    assert repr(profiler) == "<stepwatch.Profiler 'block': 1 sections, 1 calls, closed>"
    first = profiler.elapsed_s
    assert profiler.elapsed_s == first
    with profiler.section("work"):
        pass
    profiler.close()
    assert (profiler.enabled, profiler.calls("work")) == (False, 1)
    profiler.enabled = True
    with profiler.section("work"):
        pass
    assert profiler.calls("work") == 2
    assert profiler.elapsed_s > first


def test_copies_have_the_settings_and_no_statistics() -> None:
    profiler = stepwatch.Profiler("mine", values=3, memory=True)
    section = profiler.section("work", category="a", phase="loss")
    with section:
        pass
    for copied in (copy.deepcopy(profiler), pickle.loads(pickle.dumps(profiler))):
        assert (copied.name, copied.memory, copied.rows()) == ("mine", True, [])
    other = copy.deepcopy(section)
    assert (other.name, other.category, other.phase) == ("work", "a", "loss")
    assert other.profiler is not profiler


def test_it_goes_when_nobody_has_it() -> None:
    profiler = stepwatch.Profiler()
    weak = weakref.ref(profiler)
    section = profiler.section("work")
    with section:
        pass
    kept = profiler.steps([1])
    del profiler
    gc.collect()
    assert weak() is not None  # its sections keep it
    del section, kept
    gc.collect()
    assert weak() is None


def test_derived_classes() -> None:
    class Mine(stepwatch.Profiler):
        def total(self) -> int:
            return sum(row["self_ns"] for row in self.rows())

    mine = Mine("derived")
    with mine.section("work"):
        pass
    for _ in mine.steps([1]):
        pass
    assert mine.total() > 0
    assert mine.calls("step") == 1


# --- Memory ----------------------------------------------------------------------------

MEMORY = """
import mmap, stepwatch
profiler = stepwatch.Profiler(memory=True)

def take(size):
    block = mmap.mmap(-1, size)
    for at in range(0, size, 4096):
        block[at] = 1
    return block

with profiler.section("keeps"):
    kept = take(64 << 20)
    with profiler.section("inner"):
        more = take(16 << 20)
with profiler.section("returns"):
    take(128 << 20).close()
with profiler.section("frees"):
    kept.close()
with stepwatch.memory(sample_kb=0), profiler.section("counted"):
    text = bytearray(32 << 20)
    del text
profiler.memory = False
with profiler.section("not looked"):
    pass
for name in ("keeps", "inner", "returns", "frees", "counted", "not looked"):
    row = profiler.row(name)
    print(name, row["memory_bytes"], row["peak_bytes"], row["peak_rss_bytes"], row["peak_how"],
          len(profiler.memory_values(name)), sep="|")
"""


def test_memory_of_calls() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True
    )
    lines = [line.split("|") for line in done.stdout.splitlines()]
    rows = {name: rest for name, *rest in lines}
    mib, slack = 1 << 20, 4 << 20

    def near(text: str, value: int) -> bool:
        return abs(int(text) - value) <= slack

    assert near(rows["keeps"][0], 80 * mib)
    assert near(rows["keeps"][1], 80 * mib)
    assert near(rows["inner"][0], 16 * mib)
    # The kernel's mark of the most there was tells what two looks cannot see.
    assert near(rows["returns"][0], 0)
    assert near(rows["returns"][1], 128 * mib)
    assert near(rows["frees"][0], -64 * mib)
    assert near(rows["frees"][1], 0)
    assert int(rows["returns"][2]) > int(rows["keeps"][2])
    assert near(rows["counted"][1], 32 * mib)
    assert [rows[name][3] for name in rows] == ["sampled"] * 4 + ["exact", "None"]
    assert [rows[name][4] for name in rows] == ["1"] * 5 + ["0"]
    assert rows["not looked"][:3] == ["None"] * 3


WINDOWS = """
import gc, stepwatch

def leave_open():
    profiler = stepwatch.Profiler(memory=True)
    profiler.section("never ends").__enter__()

with stepwatch.memory(sample_kb=0):
    for _ in range(40):
        leave_open()
        gc.collect()
    profiler = stepwatch.Profiler(memory=True)
    with profiler.section("counted"):
        pass
    print(profiler.row("counted")["peak_how"])
"""


def test_profilers_that_go_leave_nothing_open() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WINDOWS], capture_output=True, text=True, check=True
    )
    assert done.stdout == "exact\n"


# --- With a recording ------------------------------------------------------------------


def test_sections_are_also_in_the_recording(recorded: Recording) -> None:
    profiler = stepwatch.Profiler()

    @profiler.profile("function")
    def function() -> None: ...

    for _ in profiler.steps(range(4)):
        with profiler.section("outer"), profiler.section("inner"):
            function()
    profiler.enabled = False
    with profiler.section("outer"):
        pass
    sections = {tuple(row["path"]): row["calls"] for row in recorded.report["sections"]}
    assert sections[("outer",)] == 4
    assert sections[("outer", "inner")] == 4
    assert sections[("outer", "inner", "function")] == 4
    assert recorded.report["steps"]["count"] == 4


def test_a_recording_that_begins_and_ends_meanwhile(tmp_path: Any) -> None:
    profiler = stepwatch.Profiler()
    with profiler.section("around"):
        stepwatch.start(out=tmp_path / "one", quiet=True)
        with profiler.section("inside"):
            stepwatch.stop()
            stepwatch.start(out=tmp_path / "two", quiet=True)
    run = stepwatch.stop()
    assert run is not None
    assert [row["name"] for row in run.sections] == []
    assert calls_by_path(profiler) == {("around",): 1, ("around", "inside"): 1}


def test_the_module_is_as_small_as_before() -> None:
    told = "print('Profiler' in vars(stepwatch))"
    code = f"import stepwatch; {told}; stepwatch.Profiler; {told}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
