"""The line profiler: what it chooses, what it times, what it leaves alone."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import gc
import inspect
import io
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

NAP = 0.05
NAP_NS = int(NAP * 1e9)


def hits(profile: stepwatch.Lines, function: Callable[..., Any]) -> dict[int, int]:
    """Return hits by line, counted from the `def`."""
    code = inspect.unwrap(function).__code__
    start = code.co_firstlineno
    return {
        row["line"] - start: row["hits"]
        for row in profile.rows()
        if row["hits"]
        and row["file"] == code.co_filename
        and row["function"].endswith(code.co_name)
    }


def times(profile: stepwatch.Lines, function: Callable[..., Any]) -> dict[int, int]:
    """Return nanoseconds by line, counted from the `def`."""
    code = inspect.unwrap(function).__code__
    return {row["line"] - code.co_firstlineno: row["time_ns"] for row in profile.rows()}


def plain(count: int, *, scale: float = 2.0) -> float:
    total = 0.0
    for _ in range(count):
        total += scale
    return total


def run_python(code: str, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


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


def nap() -> int:
    time.sleep(NAP)
    return 1


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


# --- names ---------------------------------------------------------------------------

MODULE = """
import functools

def quick(value):
    return value + 1

class Model:
    def forward(self, value):
        value = quick(value)
        return value
"""


def test_by_name_before_the_import(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "package" / "named.py").write_text(MODULE)
    result = run_python(
        """
        import sys, stepwatch
        stepwatch.lines.add_by_name("package.named:Model.forward")
        stepwatch.lines.add_by_name("package.named:quick")
        assert "package" not in sys.modules
        from package.named import Model, quick
        import package.named
        assert type(package.named.__loader__).__name__ == "SourceFileLoader"
        assert package.named.__spec__.loader is package.named.__loader__
        Model().forward(1)
        quick(1)
        print([(row["function"], row["line"], row["hits"]) for row in stepwatch.lines.rows()])
        """,
        cwd=tmp_path,
    )
    assert result.stderr == ""
    rows = sorted(eval(result.stdout))
    assert rows == [("Model.forward", 9, 1), ("Model.forward", 10, 1), ("quick", 5, 2)]


def test_names_that_are_nowhere(tmp_path: Path) -> None:
    (tmp_path / "named.py").write_text(MODULE)
    result = run_python(
        """
        import stepwatch
        stepwatch.lines.add_by_name("named:Model.forwar")
        stepwatch.lines.add_by_name("namde:quick")
        import named
        """,
        cwd=tmp_path,
    )
    assert result.returncode == 0
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "stepwatch: lines of named:Model.forwar were not recorded: named has no function"
        " Model.forwar; did you mean Model.forward?",
        "stepwatch: lines of namde:quick were not recorded: module namde was not imported;"
        " did you mean named:quick?",
    ]


@pytest.mark.parametrize("name", ["quick", ":quick", "named:", "named:a..b", ".a:b"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(ValueError, match=r"package\.module:function"):
        stepwatch.Lines().add_by_name(name)


def test_functions_of_a_script_by_name() -> None:
    from stepwatch import _line_targets

    profile = stepwatch.Lines()
    for name in ("quick", "Model.forward", "outer.<locals>.inner"):
        assert profile.add_by_name(f"no_such_script:{name}") is False
    source = MODULE + (
        "def outer():\n    def inner():\n        return 7\n    return inner()\n"
        "Model().forward(1)\nouter()\n"
    )
    code = compile(source, "<script>", "exec")
    prepared = _line_targets.prepare(code, "no_such_script")
    exec(prepared, {"__name__": "no_such_script"})
    assert sorted((row["function"], row["hits"]) for row in profile.rows()) == [
        ("Model.forward", 1),
        ("Model.forward", 1),
        ("outer.<locals>.inner", 1),
        ("quick", 1),
    ]
    assert _line_targets.missing() == []


# --- what it shows -------------------------------------------------------------------


@pytest.fixture
def profile() -> Iterator[stepwatch.Lines]:
    made = stepwatch.Lines(plain)
    plain(3)
    made.disable()
    yield made
    made.remove(plain)


def test_text(profile: stepwatch.Lines) -> None:
    text = profile.text()
    first = plain.__code__.co_firstlineno
    lines = text.splitlines()
    assert lines[0] == "Function: plain"
    assert lines[1] == f"File: {__file__}:{first}"
    assert lines[2].startswith("Total time: ")
    assert lines[3] == "Unit of Time and Per Hit: µs (1e-06 s)"
    assert lines[5].split() == [
        *("Line", "#", "Hits", "Time", "Per", "Hit", "%", "Time", "Line", "Contents")
    ]
    table = {int(line.split()[0]): line for line in lines[7:]}
    assert list(table) == list(range(first, first + 5))
    assert table[first].endswith("def plain(count: int, *, scale: float = 2.0) -> float:")
    assert table[first + 3].split()[1] == "3"
    assert table[first + 3].endswith("        total += scale")
    narrow = profile.text(columns=70).splitlines()
    assert max(map(len, narrow[7:])) <= 70
    with pytest.raises(ValueError, match="negative"):
        profile.text(-1)


def test_json(profile: stepwatch.Lines) -> None:
    document = json.loads(profile.to_json())
    assert document == profile.to_dict()
    assert document["schema"] == "stepwatch.lines/1"
    assert document["unit"] == "ns"
    (function,) = document["functions"]
    first = plain.__code__.co_firstlineno
    assert (function["file"], function["name"], function["line"]) == (__file__, "plain", first)
    line = function["lines"][2]
    assert (line["line"], line["hits"], line["source"]) == (first + 3, 3, "        total += scale")
    assert line["per_hit_ns"] == pytest.approx(line["time_ns"] / 3)


def test_saving(profile: stepwatch.Lines, tmp_path: Path) -> None:
    profile.save(tmp_path / "lines.json")
    profile.save(str(tmp_path / "lines.txt"))
    assert json.loads((tmp_path / "lines.json").read_text()) == profile.to_dict()
    assert (tmp_path / "lines.txt").read_text(encoding="utf-8") == profile.text()
    with pytest.raises(ValueError, match=r"\.json or \.txt"):
        profile.save(tmp_path / "lines.lprof")
    with pytest.raises(FileNotFoundError):
        profile.save(tmp_path / "missing" / "lines.txt")


def test_printing(profile: stepwatch.Lines, capsys: pytest.CaptureFixture[str]) -> None:
    profile.print()
    assert capsys.readouterr().out == profile.text()
    stream = io.StringIO()
    profile.print(file=stream)
    assert stream.getvalue() == profile.text()
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    profile.print(narrow)
    narrow.seek(0)
    assert "us (1e-06 s)" in narrow.read()


def test_code_without_source() -> None:
    namespace: dict[str, Any] = {}
    exec(compile("def made():\n    return 1\n", "<nowhere>", "exec"), namespace)
    profile = stepwatch.Lines(namespace["made"])
    namespace["made"]()
    assert "(the source is not there: <nowhere>)" in profile.text()
    assert profile.to_dict()["functions"][0]["lines"][0]["source"] is None


def test_lines_out_of_any_range() -> None:
    import ast

    tree = ast.parse("def far():\n    x = 1\n    return x\n")
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    ast.increment_lineno(function.body[1], 2**29)
    namespace: dict[str, Any] = {}
    exec(compile(tree, "<far>", "exec"), namespace)
    profile = stepwatch.Lines(namespace["far"])
    assert namespace["far"]() == 1
    assert [row["hits"] for row in profile.rows()] == [1]
    assert profile.text()


# --- recordings ----------------------------------------------------------------------


def lines_of_run(build_dir: Path, path: Path) -> dict[str, Any]:
    """Return the line profile that a recording holds, read by the library."""
    library = ctypes.CDLL(str(build_dir / "src" / "libstepwatch.so"))
    run, lines = ctypes.c_void_p(), ctypes.c_void_p()
    assert library.sw_run_open(ctypes.byref(run), os.fsencode(path), None) == 0
    assert library.sw_lines_of_run(ctypes.byref(lines), run, None) == 0
    library.sw_writer_to_memory.restype = ctypes.c_void_p
    library.sw_writer_text.restype = ctypes.c_char_p
    writer = ctypes.c_void_p(library.sw_writer_to_memory())
    library.sw_export_lines_json(writer, lines)
    document: dict[str, Any] = json.loads(library.sw_writer_text(writer, None))
    library.sw_writer_close(writer, None)
    library.sw_lines_free(lines)
    library.sw_run_free(run)
    return document


def test_totals_are_in_the_recording(build_dir: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, time
            import stepwatch

            @stepwatch.lines
            def work(count):
                for _ in range(count):
                    time.sleep(0.01)

            work(5)
            stepwatch.start(out=sys.argv[1])
            work(2)
            stepwatch.stop()
            work(1)
            stepwatch.start(out=sys.argv[2])
            work(3)
            """
        )
    )
    outs = [tmp_path / "first", tmp_path / "second"]
    result = subprocess.run(
        [sys.executable, str(script), *map(str, outs)], capture_output=True, text=True, check=True
    )
    assert result.stdout == ""
    for out, count in zip(outs, (2, 3)):
        (function,) = lines_of_run(build_dir, out)["functions"]
        assert (function["name"], function["file"]) == ("work", str(script))
        got = {line["line"] - function["line"]: line for line in function["lines"]}
        assert {number: line["hits"] for number, line in got.items()} == {2: count + 1, 3: count}
        assert got[3]["time_ns"] >= count * 10_000_000
        assert got[3]["source"] == "        time.sleep(0.01)"
