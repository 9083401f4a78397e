"""Ctrl-C reaches the program, whatever of ours runs at that moment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Raises KeyboardInterrupt at many events of what ours does in Python, in a child each: the
# program has to see it.
_CODE = """
import os, signal, sys
import stepwatch

signal.signal(signal.SIGINT, signal.default_int_handler)


def start(folder):
    stepwatch.start(out=folder, report=False, functions=True, lines=["a:b"], sampler_hz=100)


def go_on(folder):
    start(folder)
    sys.settrace(trace)
    for _ in stepwatch.steps(range(2)):
        with stepwatch.section("a"):
            pass
    stepwatch.stop()


def trace(frame, event, argument):
    global seen, where
    seen += 1
    if seen >= wanted:
        sys.settrace(None)
        where = (frame.f_code.co_name, frame.f_lineno)
        raise KeyboardInterrupt
    return trace


def child(action, folder):
    if action is start:
        sys.settrace(trace)
    try:
        action(folder)
        for _ in range(3):
            len("")
    except KeyboardInterrupt:
        return 0
    finally:
        sys.settrace(None)
    if where is None:
        return 1
    print(action.__name__, "lost it in", *where, flush=True)
    return 2


lost = 0
for action in (start, go_on):
    for wanted in range(1, 100_000, 11 if action is start else 1):
        seen, where = 0, None
        pid = os.fork()
        if pid == 0:
            code = 3
            try:
                code = child(action, os.path.join(sys.argv[1], f"{action.__name__}{wanted}"))
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code == 1:
            break
        lost += code != 0
    else:
        raise AssertionError("there is no end")
    assert wanted > 5, wanted
sys.exit(lost != 0)
"""


def test_no_interrupt_is_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _CODE, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, ""), result.stdout + result.stderr


# A signal comes while a function profile meets many native functions for the first time, which is
# when it makes their names.
_NAMES = """
import random, signal
import stepwatch

raised = 0


def on_alarm(number, frame):
    global raised
    raised += 1
    raise KeyboardInterrupt


def meet(methods):
    for method in methods:
        try:
            method()
        except Exception:
            pass


signal.signal(signal.SIGALRM, on_alarm)
METHODS = [getattr(value, name) for value in ("", b"", [], {}, 1, 1.0, {1}, (), bytearray())
           for name in dir(value) if not name.startswith("_")]
seen = 0
for _ in range(600):
    profile = stepwatch.functions()
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 3e-4))
        with profile:
            for _ in range(1000):
                meet(METHODS)
    except KeyboardInterrupt:
        seen += 1
    assert "not counted" not in str(profile.notes), profile.notes
assert seen == raised == 600, (seen, raised)
"""


def test_an_interrupt_while_a_function_is_met_is_not_lost() -> None:
    command = [sys.executable, "-c", _NAMES]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr


# A signal comes while ours imports something, where the interpreter drops what is raised in
# callbacks of weak references. It waits until the import is done.
_IMPORT = """
import signal, sys, threading
import stepwatch

inside = []


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "stepwatch._config":
            try:
                signal.pthread_kill(threading.get_ident(), signal.SIGINT)
                for _ in range(1000):
                    len("")
            except KeyboardInterrupt:
                inside.append(name)
            asked.append(name)


asked = []
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
try:
    stepwatch.start(out=sys.argv[1], report=False, functions=True)
    for _ in range(3):
        len("")
except KeyboardInterrupt:
    came = True
else:
    came = False
assert (asked, inside, came) == (["stepwatch._config"], [], True), (asked, inside, came)
assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
stepwatch.stop()
"""


def test_an_interrupt_waits_for_an_import(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _IMPORT, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr


# Ctrl-C comes while the profile takes its seat: it is told, and nothing is left behind.
_SEAT = """
import sys, threading
import stepwatch

error = None


def audit(event, arguments):
    if event == "sys.setprofile" and error is not None:
        raise error


sys.addaudithook(audit)
profile = stepwatch.functions()
for error in (KeyboardInterrupt(), ValueError("no")):
    try:
        profile.start()
    except KeyboardInterrupt as got:
        assert got is error
    except RuntimeError as got:
        assert isinstance(error, ValueError) and "could not be set" in str(got), got
    else:
        raise AssertionError("started")
    assert not profile.running
    assert threading._profile_hook is None
    error = None
    profile.start()
    thread = threading.Thread(target=len, args=("",))
    thread.start()
    thread.join()
    profile.stop()
    assert profile.notes == [], profile.notes
    assert threading._profile_hook is None
    assert any(row["name"] == "run" for row in profile.rows())
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there is no such seat from 3.12 on")
def test_an_interrupt_while_the_seat_is_taken() -> None:
    command = [sys.executable, "-c", _SEAT]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert result.returncode == 0, result.stdout + result.stderr


# Up to 3.11 the line profiler sets a trace function whenever a chosen function begins, which Python
# tells audit hooks. A program's own hook may be where Ctrl-C arrives.
_LINES = """
import signal, sys
import stepwatch


def chosen():
    return 1


def audit(event, arguments):
    global wanted
    if event == "sys.settrace":
        wanted -= 1
        if wanted == 0:
            raise KeyboardInterrupt


wanted = 0
sys.addaudithook(audit)
seen = []
sys.settrace(None)
stepwatch.lines(chosen)
for wanted in range(1, 7):
    number = wanted
    try:
        for _ in range(3):
            chosen()
    except KeyboardInterrupt:
        seen.append(number)
    wanted = 0
    assert chosen() == 1
    assert sys.gettrace() is None
assert seen == list(range(1, 7)), seen
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there are trace functions up to 3.11")
def test_an_interrupt_while_a_trace_function_is_set() -> None:
    command = [sys.executable, "-c", _LINES]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert (result.returncode, result.stderr) == (0, "")


# The same below `stepwatch run`, with functions of the program itself.
_MAIN = """
import signal, sys, time


def chosen():
    return 1


def interrupt(number, frame):
    raise KeyboardInterrupt


signal.signal(signal.SIGALRM, interrupt)
for _ in range(300):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-4)
        while True:
            chosen()
    except KeyboardInterrupt:
        pass
print("all came")
"""


def test_interrupts_of_a_program_with_a_line_profile(build_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_MAIN, encoding="utf-8")
    command = [str(build_dir / "src/cli/stepwatch"), "run", "-o", "run", "--no-report"]
    result = subprocess.run(
        [*command, "--lines", "__main__:chosen", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "STEPWATCH_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert result.stdout == "all came\n", result.stderr
    assert "ignored" not in result.stderr
    assert "Function: chosen" in (tmp_path / "run/lines.txt").read_text(encoding="utf-8")
