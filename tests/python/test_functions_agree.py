"""The function profiler counts what cProfile counts, call by call."""

from __future__ import annotations

import cProfile
import sys
from collections.abc import Callable
from typing import Any

import pytest
import stepwatch

from .conftest import load

Key = tuple[str, int, str]
Counts = dict[Any, tuple[int, int]]


function_corpus = load("function_corpus")


def add(into: Counts, key: Any, calls: int, primitive: int) -> None:
    """Add up functions that pstats cannot tell apart."""
    before = into.get(key, (0, 0))
    into[key] = before[0] + calls, before[1] + primitive


def label(code: Any) -> Key:
    """Return the key that pstats uses."""
    if isinstance(code, str):
        return "~", 0, code
    return code.co_filename, code.co_firstlineno, code.co_name


def by_cprofile(program: Callable[[], object]) -> tuple[Counts, Counts]:
    """Return calls by function, and by caller and callee."""
    profile = cProfile.Profile()
    profile.enable()
    program()
    profile.disable()
    functions: Counts = {}
    calls: Counts = {}
    for entry in profile.getstats():
        key = label(entry.code)
        if "lsprof" in key[2]:
            continue
        add(functions, key, entry.callcount, entry.callcount - entry.reccallcount)
        for sub in entry.calls or ():
            if sub.callcount:
                pair = key, label(sub.code)
                add(calls, pair, sub.callcount, sub.callcount - sub.reccallcount)
    return functions, calls


def by_stepwatch(program: Callable[[], object]) -> tuple[Counts, Counts]:
    """Return the same as our profiler sees it."""
    profile = stepwatch.functions()
    profile.start()
    program()
    profile.stop()
    functions: Counts = {}
    calls: Counts = {}
    for row in profile.rows():
        key = row["file"], row["line"], row["name"]
        functions[key] = row["calls"], row["primitive_calls"]
        for callee in row["callees"]:
            other = callee["file"], callee["line"], callee["name"]
            calls[key, other] = callee["calls"], callee["primitive_calls"]
    return functions, calls


@pytest.mark.parametrize("program", function_corpus.PROGRAMS, ids=lambda f: f.__name__)
def test_calls_agree(program: Callable[[], object]) -> None:
    program()  # what is only done once is done now
    theirs = by_cprofile(program)
    ours = by_stepwatch(program)
    assert ours[0] == theirs[0]
    assert ours[1] == theirs[1]
    assert len(ours[0]) > 1


def descend(n: int, call: Callable[[], object]) -> None:
    """Call something a few frames down."""
    if n:
        descend(n - 1, call)
    else:
        call()


def shallow() -> None:
    """Something to count."""
    len("abc")


def start_deep_stop_shallow(start: Callable[[], object], stop: Callable[[], object]) -> None:
    """Start in a deep frame and stop above it."""
    descend(5, start)
    shallow()
    stop()


def start_shallow_stop_deep(start: Callable[[], object], stop: Callable[[], object]) -> None:
    """Start, and stop in a deeper frame: what is open then has been called."""
    start()
    shallow()
    descend(5, stop)


@pytest.mark.parametrize("shape", [start_deep_stop_shallow, start_shallow_stop_deep])
def test_start_and_stop_in_different_frames(shape: Callable[..., None]) -> None:
    theirs = cProfile.Profile()
    shape(theirs.enable, theirs.disable)
    ours = stepwatch.functions()
    shape(ours.start, ours.stop)
    expected: Counts = {}
    for entry in theirs.getstats():
        key = label(entry.code)
        if "lsprof" not in key[2]:
            add(expected, key, entry.callcount, entry.callcount - entry.reccallcount)
    counted = {
        (row["file"], row["line"], row["name"]): (row["calls"], row["primitive_calls"])
        for row in ours.rows()
    }
    assert counted == expected


@pytest.mark.parametrize("program", function_corpus.PROGRAMS, ids=lambda f: f.__name__)
def test_numbers_are_consistent(program: Callable[[], object]) -> None:
    def outermost() -> None:
        program()  # what it leaves behind is freed within this frame

    profile = stepwatch.functions()
    with profile:
        outermost()
    rows = profile.rows()
    assert profile.notes == []
    by_key = {(row["file"], row["line"], row["name"]): row for row in rows}
    for row in rows:
        assert 1 <= row["primitive_calls"] <= row["calls"]
        assert 0 <= row["errors"] <= row["calls"]
        assert row["self_s"] >= 0
        # Functions that share a key are added up, and may be inside each other.
        assert row["total_s"] >= row["self_s"] * (1 - 1e-9) or row["calls"] > row["primitive_calls"]
        for callee in row["callees"]:
            other = by_key[callee["file"], callee["line"], callee["name"]]
            assert callee["calls"] <= other["calls"]
            assert callee["errors"] <= other["errors"]
    # Time is counted once: all self times make up what the outermost calls took.
    [whole] = [row for row in rows if row["name"] == "outermost"]
    total = sum(row["self_s"] for row in rows)
    assert total == pytest.approx(whole["total_s"], rel=1e-6)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="cProfile has the only seat before 3.12")
def test_both_at_once() -> None:
    function_corpus.recursion()
    theirs = cProfile.Profile()
    with stepwatch.functions() as ours:
        theirs.enable()
        function_corpus.recursion()
        theirs.disable()
    mine = {row["name"]: row["calls"] for row in ours.rows()}
    fib = [entry for entry in theirs.getstats() if label(entry.code)[2] == "fib"]
    assert mine["fib"] == fib[0].callcount == 465
