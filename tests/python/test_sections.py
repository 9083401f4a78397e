"""Sections: what is counted, for whom, and that the program does not notice."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import inspect
import os
import pickle
import resource
import subprocess
import sys
import threading
import time
import tracemalloc
import weakref
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest
import stepwatch

if TYPE_CHECKING:
    from .conftest import Recording


def test_one_object_per_name_and_phase() -> None:
    assert stepwatch.section("one") is stepwatch.section(name="one")
    assert stepwatch.section("one") is stepwatch.section("".join(["o", "ne"]))
    assert stepwatch.section("one") is not stepwatch.section("one", phase="loss")
    assert stepwatch.section("one", "loss") is stepwatch.section("one", phase="loss")
    assert stepwatch.section("one").name == "one"
    assert stepwatch.section("one").phase is None
    assert hash(stepwatch.section("one")) == hash(stepwatch.section("one"))


def test_usual_names_have_their_phase() -> None:
    assert stepwatch.section("forward").phase == "forward"
    assert stepwatch.section("forward") is stepwatch.section("forward", phase="forward")
    assert repr(stepwatch.section("forward")) == "stepwatch.section('forward')"
    mine = stepwatch.section("my forward", phase="forward")
    assert mine.phase == "forward"
    assert repr(mine) == "stepwatch.section('my forward', phase='forward')"


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"no phase 'fwd'; did you mean 'forward'\?"):
        stepwatch.section("x", phase="fwd")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no phase 'nonsense'; there are: other, data_wait, "):
        stepwatch.section("x", phase="nonsense")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        stepwatch.section("x", phase=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        stepwatch.section(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        stepwatch.section()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        stepwatch.section("x", nme="y")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes one function"):
        stepwatch.section("x")(1, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="takes one function"):
        stepwatch.section("x")(1, 2, 3)  # type: ignore[call-arg]


def test_a_subclass_of_str_is_its_text() -> None:
    class Name(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            raise AssertionError

        __hash__ = str.__hash__

    assert stepwatch.section(Name("sub")) is stepwatch.section("sub")


def test_pickle_copy_weak() -> None:
    section = stepwatch.section("kept", phase="loss")
    assert pickle.loads(pickle.dumps(section)) is section
    assert copy.copy(section) is section
    assert copy.deepcopy([section])[0] is section
    assert weakref.ref(section)() is section


def test_nesting_and_recursion(recorded: Recording) -> None:
    section = stepwatch.section("again")

    def down(depth: int) -> None:
        with section:
            if depth:
                down(depth - 1)

    down(4)
    with section as same, same:
        pass
    assert recorded.calls("again") == 7
    assert max(len(row["path"]) for row in recorded.rows("again")) == 5


def test_exceptions_are_counted_and_pass(recorded: Recording) -> None:
    section = stepwatch.section("fails")
    for error in (KeyError("mine"), SystemExit(3), KeyboardInterrupt(), RecursionError()):
        with pytest.raises(type(error)) as caught, section:
            raise error
        assert caught.value is error
        assert error.__context__ is None
        assert error.__cause__ is None
    with section:
        pass
    assert recorded.calls("fails") == 5
    assert recorded.errors("fails") == 4


def test_raise_in_the_exit_of_something_nested(recorded: Recording) -> None:
    class Bad:
        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> None:
            raise ValueError("exit")

    outer, inner = stepwatch.section("outer"), stepwatch.section("inner")
    with pytest.raises(ValueError, match="exit"), outer, Bad(), inner:
        raise KeyError("body")
    assert recorded.errors("outer") == 1
    assert recorded.errors("inner") == 1
    assert recorded.rows("inner")[0]["path"] == ["outer", "inner"]


def test_an_exception_being_handled_stays(recorded: Recording) -> None:
    try:
        raise KeyError("first")
    except KeyError:
        first = sys.exc_info()[1]
        with stepwatch.section("inside"):
            inside = sys.exc_info()[1]
        after = sys.exc_info()[1]
    assert inside is first
    assert after is first
    assert recorded.errors("inside") == 0


def test_exit_stack_and_by_hand(recorded: Recording) -> None:
    section = stepwatch.section("stacked")
    assert isinstance(section, contextlib.AbstractContextManager)
    with contextlib.ExitStack() as stack:
        assert stack.enter_context(section) is section
        stack.push(section)
        section.__enter__()
    section.__enter__()
    section.__exit__(None, None, None)
    type(section).__enter__(section)
    type(section).__exit__(section, None, None, None)
    assert inspect.isroutine(stepwatch.section.__enter__)
    assert recorded.calls("stacked") == 4
    assert recorded.errors("stacked") == 0


def test_exit_stack_sees_the_error(recorded: Recording) -> None:
    def work() -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(stepwatch.section("stack error"))
            raise OSError("no")

    with pytest.raises(OSError, match="no"):
        work()
    assert recorded.errors("stack error") == 1


def test_threads(recorded: Recording) -> None:
    section = stepwatch.section("threaded")

    def work() -> None:
        for _ in range(1000):
            with section, stepwatch.section("threaded inner"):
                pass

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorded.calls("threaded") == 4000
    assert recorded.calls("threaded inner") == 4000


def test_interleaved_generators(recorded: Recording) -> None:
    def work(name: str) -> Generator[None, None, None]:
        with stepwatch.section(name):
            yield

    slow, quick = work("slow"), work("quick")
    next(slow)
    next(quick)
    time.sleep(0.02)
    with pytest.raises(StopIteration):
        next(quick)
    time.sleep(0.05)
    with pytest.raises(StopIteration):
        next(slow)
    assert recorded.calls("slow") == recorded.calls("quick") == 1
    assert recorded.total_ms("slow") >= 70
    assert 20 <= recorded.total_ms("quick") < recorded.total_ms("slow") - 40


def test_self_time_of_generators_that_take_turns_is_not_known(recorded: Recording) -> None:
    """None of their calls nests: they have inclusive time only."""

    def work(name: str) -> Generator[None, None, None]:
        with stepwatch.section(name):
            yield

    first, second = work("first"), work("second")
    next(first)
    next(second)
    list(first)
    list(second)
    with stepwatch.section("third"):
        pass
    (row,) = recorded.rows("first")
    assert (row["calls"], row["unnested"], row["self_ms"]) == (1, 1, None)
    assert row["total_ms"] > 0
    assert recorded.rows("third")[0]["self_ms"] is not None
    with stepwatch.open(recorded.folder) as run:
        (same,) = [each for each in run.sections if each["name"] == "first"]
        assert (same["self_ns"], same["self_ms"]) == (None, None)


def test_two_generators_of_one_section(recorded: Recording) -> None:
    def work() -> Generator[None, None, None]:
        with stepwatch.section("shared"):
            yield

    first, second = work(), work()
    next(first)
    time.sleep(0.05)
    next(second)
    # The one that began last ends last: its time must not go to the other.
    list(first)
    time.sleep(0.02)
    list(second)
    rows = recorded.rows("shared")
    assert recorded.calls("shared") == 2
    longest, shortest = max(r["max_ms"] for r in rows), min(r["min_ms"] for r in rows)
    assert longest >= 50
    assert 20 <= shortest < 50


@pytest.mark.parametrize("how", ["with", "ExitStack", "AsyncExitStack"])
def test_interleaved_tasks(recorded: Recording, how: str) -> None:
    async def work(before: float, after: float) -> None:
        await asyncio.sleep(before)
        if how == "with":
            with stepwatch.section("task"):
                await asyncio.sleep(after)
        elif how == "ExitStack":
            with contextlib.ExitStack() as stack:
                stack.enter_context(stepwatch.section("task"))
                await asyncio.sleep(after)
        else:
            async with contextlib.AsyncExitStack() as stack_:
                stack_.enter_context(stepwatch.section("task"))
                await asyncio.sleep(after)

    async def main() -> None:
        # The second begins while the first is open, and ends after it.
        await asyncio.gather(work(0, 0.1), work(0.05, 0.4))

    asyncio.run(main())
    rows = recorded.rows("task")
    assert recorded.calls("task") == 2
    assert recorded.open("task") == 0
    longest, shortest = max(r["max_ms"] for r in rows), min(r["min_ms"] for r in rows)
    assert longest >= 390
    assert 90 <= shortest < 390


def test_a_closed_generator_is_no_error(recorded: Recording) -> None:
    def work() -> Generator[int, None, None]:
        with stepwatch.section("closed"):
            yield 1

    for _ in work():
        break
    assert recorded.calls("closed") == 1
    assert recorded.errors("closed") == 0


@pytest.mark.usefixtures("plain_memory")
def test_no_growth(recorded: Recording) -> None:
    section = stepwatch.section("grow")

    def many(count: int) -> None:
        for _ in range(count):
            with section:
                pass
            with stepwatch.section("grow by name"):
                pass

    many(20_000)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    many(20_000)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 2_000
    stepwatch.stop()
    references = sys.getrefcount(section)
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many(500_000)
    assert sys.getrefcount(section) == references
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size < 4_096
    assert recorded.calls("grow") == 40_000


@pytest.mark.usefixtures("plain_memory")
def test_a_million_while_recording(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True, events=False)
    section = stepwatch.section("million")
    references = sys.getrefcount(section)
    for _ in range(100_000):
        with section:
            pass
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(900_000):
        with section:
            pass
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - size
    stepwatch.stop()
    assert grown < 8_192
    assert sys.getrefcount(section) == references


def test_names_without_end_do_not_fill_the_memory() -> None:
    text = (
        "import resource, stepwatch\n"
        "for number in range(70_000): stepwatch.section(f'endless {number}')\n"
        "assert stepwatch.section('endless 1') is stepwatch.section('endless 1')\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for number in range(70_000, 140_000): stepwatch.section(f'endless {number}')\n"
        "assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_192\n"
        "late = stepwatch.section('endless 69999')\n"
        "assert late.name == 'endless 69999'\n"
        "with late: pass\n"
        "timed = stepwatch.profile(name='late')(len)\n"
        "assert stepwatch.profile(name='late')(timed) is timed\n"
    )
    script(text)


def script(text: str, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    return done


def reread(folder: Path, command: Path) -> Any:
    from json import loads

    return loads(subprocess.check_output([command, "report", folder, "--json"], text=True))


def test_sys_exit_inside(tmp_path: Path, stepwatch_cli: Path) -> None:
    text = (
        "import sys, stepwatch\n"
        "stepwatch.start(out=sys.argv[1], quiet=True)\n"
        "with stepwatch.section('leaving'):\n"
        "    sys.exit(7)\n"
    )
    script(text, tmp_path / "run", code=7)
    (row,) = reread(tmp_path / "run", stepwatch_cli)["sections"]
    assert (row["name"], row["calls"], row["errors"]) == ("leaving", 1, 1)


def test_os_exit_inside(tmp_path: Path, stepwatch_cli: Path) -> None:
    text = (
        "import os, sys, stepwatch\n"
        "stepwatch.start(out=sys.argv[1], quiet=True)\n"
        "with stepwatch.section('gone'):\n"
        "    os._exit(5)\n"
    )
    script(text, tmp_path / "run", code=5)
    (row,) = reread(tmp_path / "run", stepwatch_cli)["sections"]
    assert row["name"] == "gone"
    assert row["calls"] + row["open"] == 1


def test_interrupt_at_any_moment(tmp_path: Path, stepwatch_cli: Path) -> None:
    text = (
        "import os, signal, sys, threading, time, stepwatch\n"
        "stepwatch.start(out=sys.argv[1], quiet=True)\n"
        "def poke():\n"
        "    while not done:\n"
        "        time.sleep(0.0007)\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "done, entered, seen = [], 0, 0\n"
        "def ignore(*_): pass\n"
        "thread = threading.Thread(target=poke)\n"
        "thread.start()\n"
        "end = time.monotonic() + 1\n"
        "while time.monotonic() < end:\n"
        "    try:\n"
        "        while time.monotonic() < end:\n"
        "            with stepwatch.section('poked'), stepwatch.section('inner'):\n"
        "                pass\n"
        "    except KeyboardInterrupt:\n"
        "        seen += 1\n"
        "signal.signal(signal.SIGINT, ignore)\n"
        "done.append(1)\n"
        "thread.join()\n"
        "assert seen > 10\n"
    )
    try:
        script(text, tmp_path / "run")
    except AssertionError as error:
        # The handler may strike between two lines of the script itself.
        if "KeyboardInterrupt" not in str(error):
            raise
    rows = {row["name"] for row in reread(tmp_path / "run", stepwatch_cli)["sections"]}
    assert {"poked", "inner"} <= rows


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_after_fork(tmp_path: Path, stepwatch_cli: Path) -> None:
    text = (
        "import os, sys, stepwatch\n"
        "stepwatch.start(out=sys.argv[1], quiet=True)\n"
        "section = stepwatch.section('both')\n"
        "with section: pass\n"
        "pid = os.fork()\n"
        "for _ in range(10):\n"
        "    with section, stepwatch.section('later'): pass\n"
        "if pid:\n"
        "    assert os.waitpid(pid, 0)[1] == 0\n"
    )
    script(text, tmp_path / "run")
    rows = reread(tmp_path / "run", stepwatch_cli)["sections"]
    assert sum(row["calls"] for row in rows if row["name"] == "both") == 21
    assert sum(row["calls"] for row in rows if row["name"] == "later") == 20


def test_subinterpreter(tmp_path: Path) -> None:
    if sys.version_info >= (3, 13):
        module = "_interpreters"
    else:
        module = "_xxsubinterpreters"
    interpreters = pytest.importorskip(module)
    inside = (
        f"import sys; sys.path[:] = {sys.path!r}; import stepwatch\n"
        "with stepwatch.section('sub') as s: assert s is stepwatch.section('sub')\n"
        "assert stepwatch.profile(len)([1]) == 1\n"
    )
    text = (
        f"import sys, {module} as interpreters, stepwatch\n"
        "stepwatch.start(out=sys.argv[1], quiet=True)\n"
        "made = interpreters.create()\n"
        f"result = interpreters.run_string(made, {inside!r})\n"
        "assert result is None, result\n"
        "interpreters.destroy(made)\n"
        "with stepwatch.section('sub'): pass\n"
    )
    assert interpreters
    # The modules of subinterpreters warn on their import in some versions.
    done = subprocess.run(
        [sys.executable, "-c", text, tmp_path / "run"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


SUBINTERPRETERS = """
import threading
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
inside = '''
import json, stepwatch
for _ in range(20):
    kept = [json.dumps(list(range(200))), bytearray(20000)]
for _ in stepwatch.steps(range(3)):
    with stepwatch.section("sub"):
        pass
'''
def use():
    for _ in range(3):
        made = interpreters.create()
        assert interpreters.run_string(made, inside) is None
        interpreters.destroy(made)
use()
threads = [threading.Thread(target=use) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("end")
"""


@pytest.mark.skipif(sys.version_info < (3, 12), reason="interpreters share their lock before 3.12")
@pytest.mark.parametrize("options", [[], ["--memory"]])
def test_subinterpreters_with_memory_of_their_own(
    options: list[str], tmp_path: Path, stepwatch_cli: Path
) -> None:
    """Objects of one are none of another's: not when a module is imported, nor at its steps."""
    program = tmp_path / "program.py"
    program.write_text(SUBINTERPRETERS)
    words = [str(stepwatch_cli), "run", "-o", str(tmp_path / "run"), *options, str(program)]
    env = {**os.environ, "STEPWATCH_PYTHON": sys.executable}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=env)
    assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


def test_types_of_arguments_are_kept() -> None:
    # Read by mypy: what a section decorates keeps its type.
    @stepwatch.section("typed")
    def double(number: int) -> int:
        return number * 2

    result: int = double(2)
    assert result == 4

    class Manager:
        def __enter__(self) -> stepwatch.section:
            return stepwatch.section("typed").__enter__()

        def __exit__(
            self,
            kind: type[BaseException] | None,
            error: BaseException | None,
            trace: TracebackType | None,
        ) -> None:
            stepwatch.section("typed").__exit__(kind, error, trace)

    with Manager() as section:
        assert section.name == "typed"
