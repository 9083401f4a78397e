"""stepwatch.Profiler: sections, threads, generators, tasks and decorators."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import pickle
import threading
import time
from collections.abc import AsyncIterator, Generator, Iterator
from typing import TYPE_CHECKING

import pytest
import stepwatch

if TYPE_CHECKING:
    pass
from .profiler_rows import calls_by_path, row_of

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
