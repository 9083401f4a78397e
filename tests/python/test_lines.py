"""The line profiler: what it chooses, and what it times."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import pickle
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

from .line_profiles import NAP, NAP_NS, hits, nap, plain, times

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

# --- what is chosen ------------------------------------------------------------------


def test_the_function_stays_the_same() -> None:
    before = (plain.__name__, plain.__doc__, plain.__module__, inspect.signature(plain))
    pickled = pickle.dumps(plain)
    profile = stepwatch.Lines()
    assert profile(plain) is plain
    assert (plain.__name__, plain.__doc__, plain.__module__, inspect.signature(plain)) == before
    assert pickle.dumps(plain) == pickled
    assert inspect.getsource(plain).startswith("def plain")
    assert plain(3, scale=1.5) == 4.5
    assert hits(profile, plain) == {1: 1, 2: 4, 3: 3, 4: 1}
    profile.remove(plain)


def test_the_global_object_decorates() -> None:
    @stepwatch.lines
    def decorated(value: int) -> int:
        return value + 1

    assert inspect.isfunction(decorated)
    assert decorated(1) == 2
    assert hits(stepwatch.lines, decorated) == {2: 1}
    stepwatch.lines.remove(decorated)


def test_kinds_of_methods() -> None:
    profile = stepwatch.Lines()

    class Kinds:
        @profile
        def plain(self) -> int:
            return 1

        @profile
        @staticmethod
        def static_above() -> int:
            return 2

        @staticmethod
        @profile
        def static_below() -> int:
            return 3

        @profile
        @classmethod
        def class_above(cls) -> int:
            return 4

        @profile  # type: ignore[prop-decorator]
        @property
        def computed(self) -> int:
            return 5

        @profile  # type: ignore[prop-decorator]
        @functools.cached_property
        def cached(self) -> int:
            return 6

    kinds = Kinds()
    assert isinstance(inspect.getattr_static(Kinds, "computed"), property)
    assert isinstance(inspect.getattr_static(Kinds, "static_above"), staticmethod)
    results = [kinds.plain(), kinds.static_above(), Kinds.static_below(), Kinds.class_above()]
    assert [*results, kinds.computed, kinds.cached] == [1, 2, 3, 4, 5, 6]
    ran = {row["function"].rpartition(".")[2]: row["hits"] for row in profile.rows()}
    names = ("plain", "static_above", "static_below", "class_above", "computed", "cached")
    assert ran == dict.fromkeys(names, 1)


def doubling(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args) * 2

    return wrapper


def test_decorators_above_and_below() -> None:
    profile = stepwatch.Lines()

    @profile
    @doubling
    def inside(value: int) -> int:
        value += 1
        return value

    @doubling
    @profile
    def outside(value: int) -> int:
        value += 1
        return value

    assert inside(1) == 4
    assert outside(1) == 4
    for function in (inside, outside):
        assert hits(profile, function) == {3: 1, 4: 1}
    assert len(profile.to_dict()["functions"]) == 2


def test_nested_functions_are_not_chosen() -> None:
    profile = stepwatch.Lines()

    @profile
    def outer(count: int) -> int:
        def inner(value: int) -> int:
            return value * 2

        return sum(inner(value) for value in range(count))

    assert outer(4) == 12
    assert hits(profile, outer) == {2: 1, 5: 1}


def test_closures_share_their_lines() -> None:
    profile = stepwatch.Lines()

    def make(step: int) -> Callable[[int], int]:
        @profile
        def closure(value: int) -> int:
            return value + step

        return closure

    one, two = make(1), make(2)
    assert (one(1), two(1), two(2)) == (2, 3, 4)
    assert hits(profile, one) == {2: 3}


def test_classes_and_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lines_module.py").write_text(
        "import functools\n"
        "from os.path import join\n"
        "def first():\n"
        "    return join('a', 'b')\n"
        "class Thing:\n"
        "    def method(self):\n"
        "        return self.value\n"
        "    @property\n"
        "    def value(self):\n"
        "        return 1\n"
        "    class Inner:\n"
        "        def deep(self):\n"
        "            return 2\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import lines_module  # type: ignore[import-not-found]

    profile = stepwatch.Lines(lines_module)
    lines_module.first()
    lines_module.Thing().method()
    lines_module.Thing.Inner().deep()
    ran = {row["function"]: row["line"] for row in profile.rows()}
    assert ran == {"first": 4, "Thing.method": 7, "Thing.value": 10, "Thing.Inner.deep": 13}

    of_class = stepwatch.Lines(lines_module.Thing)
    lines_module.first()
    lines_module.Thing().method()
    assert {row["function"] for row in of_class.rows()} == {"Thing.method", "Thing.value"}


def test_what_has_no_lines_is_refused() -> None:
    profile = stepwatch.Lines()
    for thing in (len, 3, "text", functools.partial(len)):
        with pytest.raises(TypeError, match="written in Python"):
            profile.add(thing)
    with pytest.raises(TypeError, match="one function"):
        profile(plain, plain)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        stepwatch.Lines(function=plain)  # type: ignore[call-arg]


# --- what is timed -------------------------------------------------------------------


def nap_and_raise() -> None:
    time.sleep(NAP)
    raise ValueError("nap")


def test_callees_belong_to_the_calling_line() -> None:
    profile = stepwatch.Lines()

    @profile
    def caller() -> int:
        value = 1
        time.sleep(NAP)
        value += len([nap() for _ in range(2)])
        with contextlib.suppress(ValueError):
            nap_and_raise()
        return value

    caller()
    taken = times(profile, caller)
    assert taken[3] >= NAP_NS
    assert taken[4] >= 2 * NAP_NS
    assert taken[6] >= NAP_NS
    assert taken[2] < NAP_NS
    document = profile.to_dict()["functions"][0]
    assert document["total_ns"] == sum(line["time_ns"] for line in document["lines"])
    assert abs(sum(line["share"] for line in document["lines"]) - 1) < 1e-9


def test_time_of_a_line_left_by_an_exception() -> None:
    profile = stepwatch.Lines()

    @profile
    def leaves() -> None:
        nap_and_raise()

    for _ in range(2):
        with pytest.raises(ValueError, match="nap"):
            leaves()
    assert hits(profile, leaves) == {2: 2}
    assert times(profile, leaves)[2] >= 2 * NAP_NS


def test_suspended_time_does_not_count() -> None:
    profile = stepwatch.Lines()

    @profile
    def generator() -> Iterator[int]:
        for index in range(2):
            yield index
            time.sleep(NAP)

    @profile
    async def coroutine() -> None:
        await asyncio.sleep(10 * NAP)

    for _ in generator():
        time.sleep(10 * NAP)
    asyncio.run(coroutine())
    assert times(profile, generator)[4] >= 2 * NAP_NS
    assert sum(row["time_ns"] for row in profile.rows()) < 15 * NAP_NS


def test_interleaved_tasks_have_their_own_time() -> None:
    profile = stepwatch.Lines()

    @profile
    async def task(count: int) -> int:
        for _ in range(count):
            time.sleep(NAP)
            await asyncio.sleep(0)
        return count

    async def main() -> list[int]:
        return list(await asyncio.gather(task(1), task(2), task(3)))

    assert asyncio.run(main()) == [1, 2, 3]
    assert hits(profile, task) == {2: 9, 3: 6, 4: 6, 5: 3}
    taken = times(profile, task)
    assert taken[3] >= 6 * NAP_NS
    # Tasks that wait for each other's naps are suspended.
    assert taken[2] + taken[4] + taken[5] < 6 * NAP_NS


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="an await that goes on is not told before 3.11"
)
def test_awaited_work_belongs_to_the_awaiting_line() -> None:
    profile = stepwatch.Lines()

    async def child() -> None:
        await asyncio.sleep(0)
        time.sleep(NAP)

    async def items() -> AsyncIterator[int]:
        await asyncio.sleep(0)
        time.sleep(NAP)
        yield 1

    @profile
    async def parent() -> None:
        await child()
        async for _ in items():
            pass

    asyncio.run(parent())
    taken = times(profile, parent)
    assert taken[2] >= NAP_NS
    assert taken[3] >= NAP_NS


def test_recursion_is_inclusive() -> None:
    profile = stepwatch.Lines()

    @profile
    def down(depth: int) -> int:
        if depth == 0:
            time.sleep(NAP)
            return 0
        return down(depth - 1) + 1

    begin = time.perf_counter_ns()
    assert down(3) == 3
    wall = time.perf_counter_ns() - begin
    assert hits(profile, down) == {2: 4, 3: 1, 4: 1, 5: 3}
    taken = times(profile, down)
    # Every one of the three calls on line 5 lasts as long as those inside of it.
    assert 3 * NAP_NS <= taken[5] <= 3 * wall


def test_threads() -> None:
    profile = stepwatch.Lines()

    @profile
    def work() -> None:
        time.sleep(NAP)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hits(profile, work) == {2: 4}
    assert times(profile, work)[2] >= 4 * NAP_NS


def test_a_look_from_inside() -> None:
    profile = stepwatch.Lines()
    seen: list[dict[str, Any]] = []

    @profile
    def looks() -> None:
        time.sleep(NAP)
        seen.extend(profile.rows())
        profile.clear()
        time.sleep(NAP)

    looks()
    first = looks.__code__.co_firstlineno
    by_line = {row["line"] - first: row for row in seen}
    assert by_line[2]["time_ns"] >= NAP_NS
    assert by_line[3]["hits"] == 1
    assert hits(profile, looks)[5] == 1
    assert 2 not in hits(profile, looks)


def test_a_block_counts_what_runs_inside() -> None:
    def work() -> int:
        return 1

    lines = stepwatch.Lines(work)
    other = stepwatch.Lines(work)
    work()
    with lines:
        work()
        work()
    work()
    assert list(hits(lines, work).values()) == [2]
    with lines:
        work()
    assert list(hits(lines, work).values()) == [3], "blocks add up"
    assert list(hits(other, work).values()) == [5], "without a block it counts from the start"
