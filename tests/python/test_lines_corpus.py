"""Hits of the line profiler are exact, over programs that make it hard.

They are compared with what the interpreter itself tells, counted by a few lines of Python,
and with line_profiler where that is installed.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

from .conftest import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType


line_corpus = load("line_corpus", known=True)

# With events for starts and resumes the interpreter tells of more lines since 3.13: of the body
# of a function that lies on the line of its `def`, and of a `yield from` that an exception is
# thrown into.
MORE_SINCE_313 = {"one_line_lambda", "delegating"}


def our_hits(name: str) -> tuple[Counter[int], Any]:
    function, user = line_corpus.PROGRAMS[name]
    profile = stepwatch.Lines()
    assert profile(function) is function
    result = user()
    hits = Counter({row["line"]: row["hits"] for row in profile.rows() if row["hits"]})
    profile.remove(function)
    return hits, result


def interpreter_hits(name: str) -> tuple[Counter[int], Any]:
    function, user = line_corpus.PROGRAMS[name]
    count = _count_monitoring if sys.version_info >= (3, 12) else _count_settrace
    return count(function.__code__, user)


def _count_monitoring(code: CodeType, user: Callable[[], Any]) -> tuple[Counter[int], Any]:
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    tool = 4
    hits: Counter[int] = Counter()
    monitoring.use_tool_id(tool, "test")
    try:
        monitoring.register_callback(
            tool, monitoring.events.LINE, lambda _code, line: hits.update([line])
        )
        monitoring.set_local_events(tool, code, monitoring.events.LINE)
        result = user()
        monitoring.set_local_events(tool, code, 0)
        monitoring.register_callback(tool, monitoring.events.LINE, None)
    finally:
        monitoring.free_tool_id(tool)
    return hits, result


def _count_settrace(code: CodeType, user: Callable[[], Any]) -> tuple[Counter[int], Any]:
    hits: Counter[int] = Counter()

    def trace(frame: FrameType, event: str, _arg: object) -> Any:
        if frame.f_code is not code:
            return None
        if event == "line":
            hits[frame.f_lineno] += 1
        return trace

    before = sys.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        result = user()
    finally:
        sys.settrace(before)
        threading.settrace(before)  # type: ignore[arg-type,unused-ignore]
    return hits, result


def plain(value: Any) -> str:
    """Return what can be compared of a result: classes are made anew by every run."""
    return value.__name__ if isinstance(value, type) else repr(value)


@pytest.mark.parametrize("name", line_corpus.PROGRAMS)
def test_hits_are_what_the_interpreter_tells(name: str) -> None:
    expected, result = interpreter_hits(name)
    got, watched_result = our_hits(name)
    assert plain(watched_result) == plain(result)
    if sys.version_info >= (3, 13) and name in MORE_SINCE_313:
        assert set(expected) <= set(got)
        assert all(got[line] >= hits for line, hits in expected.items())
    else:
        assert got == expected
    assert got, "the program ran lines"


@pytest.mark.parametrize("name", line_corpus.PROGRAMS)
def test_hits_are_those_of_line_profiler(name: str) -> None:
    line_profiler = pytest.importorskip("line_profiler", reason="line_profiler is not installed")
    if name == "threaded" and sys.version_info < (3, 12):
        pytest.skip("line_profiler does not watch threads it was not enabled on")
    if name in MORE_SINCE_313 and sys.version_info >= (3, 13):
        pytest.skip("line_profiler does not see these lines on this Python")
    function, user = line_corpus.PROGRAMS[name]
    got, _ = our_hits(name)
    code = function.__code__
    profiler = line_profiler.LineProfiler()
    profiler.add_function(function)
    profiler.enable_by_count()
    try:
        user()
    finally:
        profiler.disable_by_count()
        function.__code__ = code
    ((_, lines),) = profiler.get_stats().timings.items()
    assert got == Counter({line: hits for line, hits, _ in lines if hits})


def test_threads_count_together() -> None:
    got, _ = our_hits("threaded")
    first = line_corpus.threaded.__code__.co_firstlineno
    assert got == {first + 1: 80, first + 2: 880, first + 3: 800, first + 4: 80}


def test_watching_twice_counts_once() -> None:
    function, user = line_corpus.PROGRAMS["recursion"]
    once, _ = our_hits("recursion")
    profile = stepwatch.Lines(function, function)
    other = stepwatch.Lines(function)
    user()
    for each in (profile, other):
        assert Counter({row["line"]: row["hits"] for row in each.rows()}) == once
    profile.remove(function)
    user()
    twice = Counter({row["line"]: row["hits"] for row in other.rows()})
    assert twice == once + once


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the code stays as it is from 3.12 on")
@pytest.mark.parametrize("name", line_corpus.PROGRAMS)
def test_hooks_leave_the_line_table_alone(name: str) -> None:
    import dis

    function, user = line_corpus.PROGRAMS[name]
    before = [line for _, line in dis.findlinestarts(function.__code__)]
    original = function.__code__
    profile = stepwatch.Lines(function)
    profile.disable()
    watched = function.__code__
    assert watched is not original
    body = [line for _, line in dis.findlinestarts(watched) if line is not None]
    assert body in (before, body[:1] + before)
    # Hooks that are switched off change nothing that a debugger sees.
    hits, result = _count_settrace(watched, user) if sys.version_info < (3, 12) else ({}, None)
    profile.remove(function)
    assert function.__code__ is original
    expected, expected_result = interpreter_hits(name)
    assert plain(result) == plain(expected_result)
    first = watched.co_firstlineno
    assert {line: n for line, n in hits.items() if line not in (first, first - 1)} == {
        line: n for line, n in expected.items() if line not in (first, first - 1)
    }
