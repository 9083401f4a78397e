"""The function profiler: what it gives, whom it leaves alone, and how it ends."""

from __future__ import annotations

import cProfile
import gc
import io
import json
import marshal
import os
import pstats
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stepwatch

MONITORING = sys.version_info >= (3, 12)


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    """Leave no recording behind when a test fails."""
    yield
    stepwatch.stop()


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def by_name(profile: stepwatch.functions) -> dict[str, Any]:
    return {row["name"]: row for row in profile.rows()}


def run_python(code: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
        check=False,
    )


def stats_of(path: Path, *options: str) -> Any:
    """Return what ``stepwatch stats --json`` says."""
    build = os.environ.get("TEST_BUILD_DIR")
    command = Path(build or "", "src", "cli", "stepwatch")
    if not build or not command.exists():
        pytest.skip("TEST_BUILD_DIR does not name a build with the command")
    result = subprocess.run(
        [command, "stats", path, "--json", *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(result.stdout)


def test_rows() -> None:
    with stepwatch.functions("work") as profile:
        fib(5)
        len("abc")
    assert profile.name == "work"
    assert not profile.running
    rows = by_name(profile)
    assert set(rows) == {"fib", "<built-in method builtins.len>"}
    row = rows["fib"]
    assert row["file"] == fib.__code__.co_filename
    assert row["line"] == fib.__code__.co_firstlineno
    assert row["qualname"] == "fib"
    assert (row["calls"], row["primitive_calls"], row["errors"]) == (15, 1, 0)
    assert not row["native"]
    assert [(caller["name"], caller["calls"]) for caller in row["callers"]] == [("fib", 14)]
    assert [(callee["name"], callee["calls"]) for callee in row["callees"]] == [("fib", 14)]
    native = rows["<built-in method builtins.len>"]
    assert native["native"]
    assert (native["file"], native["line"], native["calls"]) == ("~", 0, 1)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code knows its qualified name from 3.11 on")
def test_qualified_names() -> None:
    class Thing:
        def method(self) -> None:
            pass

    with stepwatch.functions() as profile:
        Thing().method()
    assert by_name(profile)["method"]["qualname"].endswith("Thing.method")


def test_times() -> None:
    def inner() -> None:
        time.sleep(0.02)

    def outer() -> None:
        inner()
        time.sleep(0.01)

    with stepwatch.functions() as profile:
        outer()
    rows = by_name(profile)
    sleep = rows["<built-in method time.sleep>"]
    assert sleep["self_s"] == sleep["total_s"] >= 0.03
    assert rows["inner"]["total_s"] >= 0.02 > rows["inner"]["self_s"]
    assert rows["outer"]["total_s"] >= 0.03
    by_caller = {caller["name"]: caller["total_s"] for caller in sleep["callers"]}
    assert by_caller["inner"] >= 0.02
    assert by_caller["outer"] >= 0.01


def test_errors_are_counted_and_pass() -> None:
    def fails(n: int) -> None:
        if n % 2:
            raise ValueError(n)

    caught = []
    with stepwatch.functions() as profile:
        for i in range(5):
            try:
                fails(i)
                int("x")
            except ValueError as error:
                caught.append(str(error))
    assert len(caught) == 5
    rows = by_name(profile)
    assert (rows["fails"]["calls"], rows["fails"]["errors"]) == (5, 2)
    with pytest.raises(KeyError, match="out"), stepwatch.functions() as profile:
        raise KeyError("out")
    assert not profile.running


def test_native_functions_can_be_left_out() -> None:
    with stepwatch.functions(builtins=False) as profile:
        fib(3)
        len("abc")
    assert set(by_name(profile)) == {"fib"}


def test_starts_add_up_until_cleared() -> None:
    profile = stepwatch.functions()
    for _ in range(3):
        profile.start()
        fib(5)
        profile.stop()
    assert by_name(profile)["fib"]["calls"] == 45
    profile.stop()  # once more does nothing
    profile.clear()
    assert profile.rows() == []


def test_misuse() -> None:
    profile = stepwatch.functions()
    profile.start()
    try:
        with pytest.raises(RuntimeError, match="running already"):
            profile.start()
        with pytest.raises(RuntimeError, match="is running"):
            profile.clear()
    finally:
        profile.stop()
    with pytest.raises(TypeError, match="name must be str"):
        stepwatch.functions(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="sort must be"):
        profile.text(sort="nonsense")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="limit must be"):
        profile.text(limit=0)
    with pytest.raises(TypeError, match="generator"):

        @profile
        def numbers() -> Iterator[int]:
            yield 1


def test_results_while_running() -> None:
    profile = stepwatch.functions()
    profile.start()
    fib(5)
    during = by_name(profile)
    fib(5)
    profile.stop()
    assert during["fib"]["calls"] == 15
    assert by_name(profile)["fib"]["calls"] == 30


def test_decorator() -> None:
    profile = stepwatch.functions()

    @profile
    def work(n: int) -> int:
        """Work."""
        return n if n == 0 else work(n - 1)

    assert work.__name__ == "work"
    assert work.__doc__ == "Work."
    assert work(3) == 0
    assert by_name(profile)["work"]["calls"] == 4
    assert work(3) == 0
    assert by_name(profile)["work"]["calls"] == 8
    assert not profile.running


def test_decorated_coroutine() -> None:
    profile = stepwatch.functions()

    @profile
    async def work() -> int:
        return fib(4)

    coroutine = work()
    with pytest.raises(StopIteration) as stop:
        coroutine.send(None)
    assert stop.value.value == 3
    assert by_name(profile)["fib"]["calls"] == 9


def test_profiles_within_profiles() -> None:
    outer = stepwatch.functions()
    inner = stepwatch.functions(builtins=False)
    with outer:
        fib(4)
        with inner:
            fib(5)
            len("")
        fib(3)
    other = stepwatch.functions()
    inner.start()
    other.start()
    fib(4)
    inner.stop()
    fib(4)
    other.stop()
    assert by_name(outer)["fib"]["calls"] == 9 + 15 + 5
    assert by_name(inner)["fib"]["calls"] == 15 + 9
    assert set(by_name(inner)) == {"fib"}
    assert by_name(other)["fib"]["calls"] == 18


# --- Threads ----------------------------------------------------------------------------


def in_thread(calls: int) -> None:
    for _ in range(calls):
        fib(4)
        time.sleep(0)


def test_threads_are_counted_apart() -> None:
    """Interleaved recursion of many threads: cProfile mixes them up from 3.12 on."""
    with stepwatch.functions() as profile:
        threads = [threading.Thread(target=in_thread, args=(20,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        fib(4)
    rows = by_name(profile)
    assert rows["in_thread"]["calls"] == rows["in_thread"]["primitive_calls"] == 8
    assert rows["fib"]["calls"] == 9 * 161
    assert rows["fib"]["primitive_calls"] == 161
    callers = {caller["name"]: caller["calls"] for caller in rows["fib"]["callers"]}
    assert callers == {"in_thread": 160, "fib": 8 * 161}


def test_threads_that_run_before_and_after() -> None:
    go, done, leave = threading.Event(), threading.Event(), threading.Event()

    def worker() -> None:
        go.wait()
        fib(6)
        done.set()
        leave.wait()
        fib(6)

    thread = threading.Thread(target=worker)
    thread.start()
    profile = stepwatch.functions()
    profile.start()
    go.set()
    done.wait()
    profile.stop()
    leave.set()
    thread.join()
    assert by_name(profile)["fib"]["calls"] == 25
    # A thread that still lives has forgotten the profile; a new one finds it as it should.
    with profile:
        thread = threading.Thread(target=fib, args=(6,))
        thread.start()
        thread.join()
    assert by_name(profile)["fib"]["calls"] == 50


def test_stopped_by_another_thread() -> None:
    profile = stepwatch.functions()
    profile.start()
    fib(4)
    thread = threading.Thread(target=profile.stop)
    thread.start()
    thread.join()
    fib(4)
    assert by_name(profile)["fib"]["calls"] == 9


def test_many_short_threads() -> None:
    with stepwatch.functions() as profile:
        for _ in range(100):
            thread = threading.Thread(target=fib, args=(3,))
            thread.start()
            thread.join()
    assert by_name(profile)["fib"]["calls"] == 500


# --- Code objects that go ---------------------------------------------------------------


def test_dead_code_is_let_go() -> None:
    """Code that nobody else keeps must not pile up, and its counts must stay."""
    alive: list[weakref.ref[Any]] = []

    def make(i: int) -> None:
        names: dict[str, Any] = {}
        exec(f"def gone_{i % 10}():\n    return helper()\n", {"helper": helper}, names)
        gone = names[f"gone_{i % 10}"]
        alive.append(weakref.ref(gone.__code__))
        gone()

    def helper() -> int:
        return 1

    with stepwatch.functions() as profile:
        for i in range(30_000):
            make(i)
        gc.collect()
        assert sum(ref() is not None for ref in alive) < 20_000
    rows = by_name(profile)
    assert [rows[f"gone_{i}"]["calls"] for i in range(10)] == [3_000] * 10
    assert rows["helper"]["calls"] == 30_000
    callers = {caller["name"]: caller["calls"] for caller in rows["helper"]["callers"]}
    assert callers == {f"gone_{i}": 3_000 for i in range(10)}
    assert rows["make"]["calls"] == rows["make"]["primitive_calls"] == 30_000
    assert {row["name"] for row in rows["gone_1"]["callers"]} == {"make"}


# --- Others who profile -----------------------------------------------------------------


@pytest.mark.skipif(not MONITORING, reason="sys.monitoring came with 3.12")
def test_cprofile_inside_works() -> None:
    theirs = cProfile.Profile()
    with stepwatch.functions() as ours:
        fib(4)
        theirs.enable()
        fib(4)
        theirs.disable()
        fib(4)
    assert by_name(ours)["fib"]["calls"] == 27
    assert [e.callcount for e in theirs.getstats() if "fib" in str(e.code)] == [9]
    assert ours.notes == []


@pytest.mark.skipif(not MONITORING, reason="sys.monitoring came with 3.12")
def test_inside_cprofile() -> None:
    theirs = cProfile.Profile()
    theirs.enable()
    with stepwatch.functions() as ours:
        fib(4)
    theirs.disable()
    assert by_name(ours)["fib"]["calls"] == 9
    assert [e.callcount for e in theirs.getstats() if "fib" in str(e.code)] == [9]


@pytest.mark.skipif(not MONITORING, reason="sys.monitoring came with 3.12")
def test_no_tool_id_is_taken_away() -> None:
    monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    taken = [i for i in range(6) if monitoring.get_tool(i) is None]
    for i in taken:
        monitoring.use_tool_id(i, f"holder {i}")
    try:
        with pytest.raises(RuntimeError, match="holder 3"):
            stepwatch.functions().start()
        monitoring.free_tool_id(taken[0])
        with stepwatch.functions() as profile:
            fib(4)
        assert monitoring.get_tool(taken[0]) is None
        assert by_name(profile)["fib"]["calls"] == 9
    finally:
        for i in taken:
            monitoring.free_tool_id(i)


@pytest.mark.skipif(MONITORING, reason="from 3.12 on there is a seat for everybody")
def test_taken_seat_is_named() -> None:
    theirs = cProfile.Profile()
    theirs.enable()
    try:
        with pytest.raises(RuntimeError, match=r"taken by cProfile\.Profile"):
            stepwatch.functions().start()
    finally:
        theirs.disable()
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        with pytest.raises(RuntimeError, match="lambda"):
            stepwatch.functions().start()
    finally:
        sys.setprofile(before)


@pytest.mark.skipif(MONITORING, reason="from 3.12 on there is a seat for everybody")
def test_seat_that_is_lost() -> None:
    theirs = cProfile.Profile()
    with stepwatch.functions() as ours:
        fib(4)
        theirs.enable()
        fib(4)
        theirs.disable()
        fib(4)
    assert by_name(ours)["fib"]["calls"] == 9
    assert [e.callcount for e in theirs.getstats() if "fib" in str(e.code)] == [9]
    assert len(ours.notes) == 1
    assert "taken over" in ours.notes[0]
    assert sys.getprofile() is None
    with stepwatch.functions() as again:
        fib(4)
    assert by_name(again)["fib"]["calls"] == 9
    assert again.notes == []


def test_trace_functions_go_on() -> None:
    seen: list[str] = []

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is fib.__code__:
            seen.append(event)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with stepwatch.functions() as profile:
            fib(3)
    finally:
        sys.settrace(before)
    assert seen.count("call") == 5
    assert seen.count("return") == 5
    assert by_name(profile)["fib"]["calls"] == 5


# --- pstats ------------------------------------------------------------------------------


def test_pstats_takes_the_object() -> None:
    profile = stepwatch.functions()
    profile.start()
    fib(5)
    stats = pstats.Stats(profile, stream=io.StringIO())  # type: ignore[arg-type]
    assert not profile.running
    key = fib.__code__.co_filename, fib.__code__.co_firstlineno, "fib"
    primitive, calls, self_s, total_s, callers = stats.stats[key]  # type: ignore[attr-defined]
    assert (primitive, calls) == (1, 15)
    assert total_s >= self_s > 0
    assert callers[key][:2] == (14, 2)  # calls first here: the order of cProfile


def umask() -> int:
    """Return what the process takes away from the modes of its files."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def test_saved_files(tmp_path: Path) -> None:
    with stepwatch.functions() as profile:
        fib(5)
    path = tmp_path / "fib.stats"
    assert profile.save(path) == str(path)
    for each in (path, path.with_suffix(".txt")):
        assert each.stat().st_mode & 0o777 == 0o666 & ~umask(), "as any other file"
    content = path.read_bytes()
    table = marshal.loads(content)
    assert b"15 function calls (1 primitive calls) in " in content
    text = (tmp_path / "fib.txt").read_text(encoding="utf-8")
    assert content.endswith(text.encode())
    assert text == profile.text()
    assert [value[:2] for value in table.values()] == [(1, 15)]
    shown = subprocess.run(
        [sys.executable, "-m", "pstats", path],
        input="sort cumulative\nstats 3\ncallers\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert "15 function calls (1 primitive calls)" in shown
    assert "(fib)" in shown


def test_save_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    profile = stepwatch.functions("../a/b c")
    assert profile.save() == "_._a_b_c.stats"
    assert profile.save("plain") == "plain"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["_._a_b_c.stats", "_._a_b_c.txt", "plain", "plain.txt"]
    with pytest.raises(FileNotFoundError):
        profile.save("no/such/folder.stats")
    with pytest.raises(TypeError):
        profile.save(3)  # type: ignore[arg-type]


def test_a_save_that_fails_leaves_the_earlier_file(tmp_path: Path) -> None:
    program = """
import os, resource
import stepwatch
with stepwatch.functions() as profile:
    sum(range(3))
profile.save("a.stats")
before = open("a.stats", "rb").read()
resource.setrlimit(resource.RLIMIT_FSIZE, (8, resource.RLIM_INFINITY))
try:
    profile.save("a.stats")
except OSError as error:
    print(error.filename)
assert open("a.stats", "rb").read() == before
print(*sorted(os.listdir()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.split() == ["a.stats", "a.stats", "a.txt"], done.stderr


def test_saved_through_a_link(tmp_path: Path) -> None:
    with stepwatch.functions() as profile:
        fib(3)
    real, link = tmp_path / "real.stats", tmp_path / "link.stats"
    real.write_bytes(b"")
    link.symlink_to(real)
    profile.save(link)
    assert link.is_symlink()
    assert marshal.loads(real.read_bytes())


def test_text_and_print(capsys: pytest.CaptureFixture[str]) -> None:
    with stepwatch.functions() as profile:
        fib(5)
        for _ in range(30):
            len("")
    lines = profile.text(sort="calls", limit=1).splitlines()
    assert lines[0].strip().startswith("45 function calls (31 primitive calls) in ")
    assert lines[-2].endswith("{built-in method builtins.len}")
    profile.print(limit=1, sort="name")
    assert "List reduced from 2 to 1" in capsys.readouterr().out
    file = io.StringIO()
    profile.print(file=file)
    assert file.getvalue() == profile.text(limit=20)
    assert capsys.readouterr().out == ""


def test_odd_names(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    exec(compile("def naïve():\n    pass\n", "a\udc80b.py", "exec"), names)
    with stepwatch.functions() as profile:
        names["naïve"]()
    profile.save(tmp_path / "odd.stats")
    [key] = marshal.loads((tmp_path / "odd.stats").read_bytes())
    assert key == ("a\\udc80b.py", 1, "naïve")


# --- In a recording ------------------------------------------------------------------------


def test_totals_are_in_the_trace(tmp_path: Path) -> None:
    stepwatch.start(name="test", out=tmp_path / "run", quiet=True)
    profile = stepwatch.functions("traced")
    for _ in range(2):  # the second stop changes the rows of the first
        with profile:
            fib(5)
            len("")
    with stepwatch.functions() as other:
        fib(3)
    stepwatch.stop()
    found = stats_of(tmp_path / "run")
    rows = {row["name"]: row for row in found["functions"]}
    assert set(rows) == {"fib", "<built-in method builtins.len>"}
    assert rows["fib"]["calls"] == 30 + 5
    assert rows["fib"]["primitive_calls"] == 3
    [caller] = rows["fib"]["callers"]
    assert (caller["name"], caller["calls"]) == ("fib", 28 + 4)
    seconds = by_name(profile)["fib"]["total_s"] + by_name(other)["fib"]["total_s"]
    assert rows["fib"]["total_s"] == pytest.approx(seconds, rel=0.05)


def test_a_recording_that_ends_first(tmp_path: Path) -> None:
    stepwatch.start(name="test", out=tmp_path / "run", quiet=True)
    with stepwatch.functions(builtins=False) as profile:
        fib(5)
        stepwatch.stop()
        fib(5)
    # Modules that other tests imported may have something to say when they are looked at.
    [row] = (row for row in stats_of(tmp_path / "run")["functions"] if row["name"] == "fib")
    assert row["calls"] == 15
    assert by_name(profile)["fib"]["calls"] == 30


PROGRAM = """
import os, sys, stepwatch
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
stepwatch.start(out=sys.argv[1], quiet=True)
profile = stepwatch.functions()
profile.start()
fib(5)
"""


def test_a_program_that_does_not_stop(tmp_path: Path) -> None:
    result = run_python(PROGRAM, str(tmp_path / "run"))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    rows = {row["name"]: row for row in stats_of(tmp_path / "run")["functions"]}
    assert rows["fib"]["calls"] == 15


def test_a_child_counts_its_own(tmp_path: Path) -> None:
    code = (
        PROGRAM
        + """
import threading
event = threading.Event()
thread = threading.Thread(target=event.wait)
thread.start()
import warnings; warnings.simplefilter("ignore")
pid = os.fork()
if pid == 0:
    fib(4)
    counted = {row["name"]: row["calls"] for row in profile.rows()}
    assert counted["fib"] == 9, counted
    event.set()
    sys.exit(0)
assert os.waitpid(pid, 0)[1] == 0
event.set()
thread.join()
"""
    )
    result = run_python(code, str(tmp_path / "run"))
    assert (result.returncode, result.stderr) == (0, "")
    rows = {row["name"]: row for row in stats_of(tmp_path / "run")["functions"]}
    assert rows["fib"]["calls"] == 15 + 9


@pytest.mark.parametrize("ending", ["sys.exit(3)", "os._exit(3)", "raise KeyboardInterrupt"])
def test_ends_of_programs(tmp_path: Path, ending: str) -> None:
    result = run_python(PROGRAM + ending, str(tmp_path / "run"))
    expected = subprocess.run(
        [sys.executable, "-c", "import os, sys\n" + ending],
        capture_output=True,
        timeout=60,
        check=False,
    ).returncode
    assert result.returncode == expected


def test_nothing_is_left_behind() -> None:
    """A profile that is over costs nothing: no hook, no object."""
    gone: list[weakref.ref[Any]] = []

    class Marked:
        pass

    with stepwatch.functions() as profile:
        marked = Marked()
        gone.append(weakref.ref(marked))
        fib(3)
        del marked
    assert gone[0]() is None
    del profile
    assert sys.getprofile() is None
    if MONITORING:
        monitoring = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        assert "stepwatch.functions" not in [monitoring.get_tool(i) for i in range(6)]


@pytest.mark.usefixtures("plain_memory")
def test_a_lot_does_not_grow() -> None:
    """Once all functions are known, calls take no memory."""
    with stepwatch.functions():
        fib(10)
        before = resident()
        for _ in range(300):
            fib(12)
        assert resident() - before < 4 << 20


def resident() -> int:
    """Return bytes of memory in use."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def test_interrupted_at_any_moment() -> None:
    """Exceptions that come out of nowhere leave the stack of calls right."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    caught = 0
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with stepwatch.functions() as profile:
            for i in range(20):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.001 + i * 0.0001)
                    sorted([30, 40], key=fib)
                except KeyboardInterrupt:
                    caught += 1
    finally:
        signal.signal(signal.SIGALRM, before)
    rows = by_name(profile)
    assert caught == 20
    # An alarm may come before the first call.
    outermost = {caller["name"]: caller["calls"] for caller in rows["fib"]["callers"]}
    native = rows["<built-in method builtins.sorted>"]
    assert rows["fib"]["primitive_calls"] == outermost["<built-in method builtins.sorted>"] <= 20
    assert rows["fib"]["errors"] >= rows["fib"]["primitive_calls"]
    assert native["errors"] == native["calls"] <= 20
    assert rows["interrupt"]["calls"] == rows["interrupt"]["errors"] == 20


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
import stepwatch

inner = '''
import stepwatch
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
with stepwatch.functions() as profile:
    fib(5)
assert {row["name"]: row["calls"] for row in profile.rows()} == {"fib": 15}
'''

def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)

with stepwatch.functions() as profile:
    fib(4)
    one = interpreters.create()
    failed = interpreters.run_string(one, inner)
    fib(4)
    interpreters.destroy(one)
    fib(4)
assert failed is None, failed
assert {row["name"]: row["calls"] for row in profile.rows()}["fib"] == 27
"""


@pytest.mark.skipif(not MONITORING, reason="before 3.12 the interpreters of a process share less")
def test_subinterpreters() -> None:
    """Each interpreter has an engine of its own, and one thread may go through several."""
    result = run_python(SUBINTERPRETER)
    assert (result.returncode, result.stderr) == (0, "")
