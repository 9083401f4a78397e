"""The line profiler switched on and off, and living with others: profilers, tracers, forks."""

from __future__ import annotations

import gc
import sys
import time
import weakref
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

from .line_profiles import NAP, NAP_NS, hits, plain, run_python, times

if TYPE_CHECKING:
    from collections.abc import Iterator

# --- switching -----------------------------------------------------------------------


def test_switching_off_and_on() -> None:
    profile = stepwatch.Lines(plain)
    assert profile.enabled
    plain(1)
    profile.disable()
    assert not profile.enabled
    plain(1)
    assert hits(profile, plain) == {1: 1, 2: 2, 3: 1, 4: 1}
    with profile as same:
        assert same is profile
        plain(1)
    assert hits(profile, plain)[1] == 2
    profile.clear()
    assert profile.rows() == []
    assert "1 chosen function ran" in profile.text()
    profile.remove(plain)
    assert repr(profile) == "<stepwatch.Lines: 0 functions, disabled>"


def test_switching_off_from_inside() -> None:
    profile = stepwatch.Lines()

    @profile
    def toggles() -> None:
        time.sleep(NAP)
        profile.disable()
        time.sleep(NAP)
        profile.enable()
        time.sleep(NAP)

    for _ in range(3):
        toggles()
    got = hits(profile, toggles)
    assert got[2] == 3
    assert got[3] == 3
    assert 4 not in got
    assert times(profile, toggles)[2] >= 3 * NAP_NS


def test_independent_sets() -> None:
    one = stepwatch.Lines(plain)
    plain(1)
    two = stepwatch.Lines(plain)
    plain(2)
    one.disable()
    plain(3)
    assert hits(one, plain)[3] == 3
    assert hits(two, plain)[3] == 5
    del one
    plain(1)
    assert hits(two, plain)[3] == 6
    two.remove(plain)


def test_functions_are_let_go() -> None:
    profile = stepwatch.Lines()
    namespace: dict[str, Any] = {}
    exec("def function(): return 1", namespace)
    function = namespace.pop("function")
    reference = weakref.ref(function)
    code = weakref.ref(function.__code__)
    profile.add(function)
    function()
    profile.remove(function)
    del function, namespace
    gc.collect()
    assert reference() is None
    assert code() is None


def test_a_set_may_go_while_an_exception_passes() -> None:
    def fails() -> None:
        local = stepwatch.Lines(plain)
        plain(1)
        raise KeyError(len(local.rows()))

    with pytest.raises(KeyError, match="4"):
        fails()
    assert plain(1) == 2.0


def test_suspended_while_switched_off() -> None:
    profile = stepwatch.Lines()

    @profile
    def generator() -> Iterator[int]:
        yield 1
        yield 2
        yield 3

    running = generator()
    next(running)
    profile.disable()
    next(running)
    profile.enable()
    next(running)
    assert list(running) == []
    assert hits(profile, generator) == {2: 1, 4: 1}


# --- living with others --------------------------------------------------------------


def test_cprofile_works_beside() -> None:
    import cProfile
    import pstats

    profile = stepwatch.Lines(plain)
    other = cProfile.Profile()
    other.enable()
    plain(2)
    other.disable()
    stats = pstats.Stats(other).stats  # type: ignore[attr-defined]
    assert any(name == "plain" and entry[0] == 1 for (_, _, name), entry in stats.items())
    assert hits(profile, plain) == {1: 1, 2: 3, 3: 2, 4: 1}
    profile.remove(plain)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with 3.12")
def test_all_seats_taken_says_who_holds_them() -> None:
    result = run_python(
        """
        import sys, stepwatch

        def f(): return 1

        profile = stepwatch.Lines()
        taken = [number for number in range(6) if sys.monitoring.get_tool(number) is None]
        for number in taken:
            sys.monitoring.use_tool_id(number, f"holder {number}")
        try:
            profile.add(f)
        except RuntimeError as error:
            print(error)
        assert f() == 1
        for number in taken:
            sys.monitoring.free_tool_id(number)
        profile.add(f)
        print([sys.monitoring.get_tool(number) for number in (2, 3)])
        profile.remove(f)
        print(sys.monitoring.get_tool(3))
        """
    )
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "the line profiler needs a tool id of sys.monitoring and none is free: 3 by holder 3,"
        " 4 by holder 4, 5 by holder 5, 2 by holder 2, 1 by holder 1, 0 by holder 0",
        "[None, 'stepwatch.lines']",
        "None",
    ]


def test_a_trace_function_goes_on() -> None:
    seen: list[tuple[str, int]] = []
    code = plain.__code__

    def trace(frame: Any, event: str, _arg: object) -> Any:
        if frame.f_code.co_name == "plain":
            seen.append((event, frame.f_lineno - code.co_firstlineno))
            assert sys.gettrace() is trace
        return trace

    def watch() -> list[tuple[str, int]]:
        seen.clear()
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            plain(2)
        finally:
            sys.settrace(before)
        return [one for one in seen if one != ("line", 0)]

    expected = watch()
    profile = stepwatch.Lines(plain)
    assert watch() == expected
    assert hits(profile, plain) == {1: 1, 2: 3, 3: 2, 4: 1}
    profile.remove(plain)
    assert watch() == expected


def test_a_trace_function_set_inside_stays() -> None:
    profile = stepwatch.Lines()
    before = sys.gettrace()

    def trace(*_args: object) -> None:
        return None

    @profile
    def sets() -> None:
        sys.settrace(trace)

    sets()
    after = sys.gettrace()
    sys.settrace(before)
    assert after is trace


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="nothing is set on the thread since 3.12")
def test_no_trace_function_is_left_behind() -> None:
    import dis

    def other() -> int:
        return 1

    profile = stepwatch.Lines()

    @profile
    def watched() -> int:
        return other()

    assert sys.gettrace() is None
    watched()
    assert sys.gettrace() is None
    assert "hook" not in "".join(repr(one.argval) for one in dis.get_instructions(other))


def test_fork_counts_for_itself() -> None:
    result = run_python(
        """
        import os, stepwatch

        @stepwatch.lines
        def work():
            return 1

        def fork():
            work()
            pid = os.fork()
            work()
            if pid == 0:
                os._exit(sum(row["hits"] for row in stepwatch.lines.rows()))
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

        work()
        print(fork(), sum(row["hits"] for row in stepwatch.lines.rows()))
        """
    )
    assert result.stderr == ""
    assert result.stdout == "1 3\n"


def test_a_subinterpreter_is_told_no() -> None:
    result = run_python(
        """
        import sys
        code = '''
        import sys
        sys.path[:] = {path!r}
        import stepwatch
        def f(): return 1
        try:
            stepwatch.lines(f)
        except RuntimeError as error:
            print(error, flush=True)
        '''.format(path=sys.path)
        import textwrap
        code = textwrap.dedent(code)
        if sys.version_info >= (3, 13):
            import _interpreters as interpreters
        else:
            import _xxsubinterpreters as interpreters
        one = interpreters.create()
        interpreters.run_string(one, code)
        """
    )
    assert result.stdout == "the line profiler works in the main interpreter only\n", result.stderr
