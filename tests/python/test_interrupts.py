"""Ctrl-C reaches the program, whatever of ours runs at that moment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Raises KeyboardInterrupt at many events of what ours does in Python, in a child each: the
# program has to see it. What the interpreter itself drops, in weak references' callbacks, does not
# count.
_CODE = """
import os, signal, sys
import stepwatch

signal.signal(signal.SIGINT, signal.default_int_handler)
DROPPED = ("cb", "remove")


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
    if seen >= wanted and frame.f_code.co_name not in DROPPED:
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
