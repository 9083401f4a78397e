"""start, stop and record: which recording ends where, and what the Run shows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import stepwatch

pytestmark = pytest.mark.usefixtures("no_recording")


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("STEPWATCH")}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**env, **environment},
    )


def test_record(tmp_path: Path) -> None:
    with stepwatch.record("mine", out=tmp_path / "run", quiet=True) as run:
        assert stepwatch.is_recording()
        assert run.path == str(tmp_path / "run")
        with stepwatch.section("inside"):
            pass
        assert [row["name"] for row in run.sections] == ["inside"]
        with stepwatch.section("later"):
            pass
    assert not stepwatch.is_recording()
    # What was seen inside does not stay.
    assert {row["name"] for row in run.sections} == {"inside", "later"}
    assert run.complete
    assert run.name == "mine"


def test_record_stops_on_exceptions(tmp_path: Path) -> None:
    error = KeyError("mine")
    with pytest.raises(KeyError) as caught, stepwatch.record(out=tmp_path / "run") as run:
        raise error
    assert caught.value is error
    assert not stepwatch.is_recording()
    assert run.complete


def test_record_inside_a_recording_is_a_section(tmp_path: Path) -> None:
    stepwatch.start(name="outer", out=tmp_path / "outer")
    with stepwatch.record("inner", out=tmp_path / "never") as run:
        pass
    with pytest.raises(KeyError), stepwatch.record():
        raise KeyError
    assert stepwatch.is_recording()
    assert run.path == str(tmp_path / "outer")
    stepwatch.stop()
    assert not (tmp_path / "never").exists()
    rows = stepwatch.open(tmp_path / "outer").sections
    assert {row["name"]: (row["calls"], row["errors"]) for row in rows} == {
        "inner": (1, 0),
        "record": (1, 1),
    }


def test_record_can_nest_itself(tmp_path: Path) -> None:
    recorder = stepwatch.record("twice", out=tmp_path / "run")
    with recorder as outer, recorder as inner:
        assert outer.path == inner.path
    assert not stepwatch.is_recording()
    assert [row["calls"] for row in outer.sections] == [1]
    assert [row["calls"] for row in inner.sections] == [1]


def test_record_leaves_a_recording_that_is_not_its_own(tmp_path: Path) -> None:
    with stepwatch.record(out=tmp_path / "first") as run:
        stepwatch.stop()
        stepwatch.start(out=tmp_path / "second")
    assert stepwatch.is_recording()
    assert run.path == str(tmp_path / "first")


def test_a_child_does_not_stop_what_its_parent_records(tmp_path: Path) -> None:
    pid = 0
    try:
        with stepwatch.record(out=tmp_path / "run") as run:
            pid = os.fork()
            if pid == 0:
                raise KeyError
            assert os.waitpid(pid, 0)[1] == 0
            with stepwatch.section("parent"):
                pass
    except KeyError:
        os._exit(0)
    assert [row["name"] for row in run.sections] == ["parent"]


def test_stop_gives_a_run(tmp_path: Path) -> None:
    nothing = stepwatch.stop()
    assert not nothing
    assert not nothing.recorded
    assert str(nothing.report()) == "Nothing was recorded.\n"
    stepwatch.start(out=tmp_path / "run")
    with stepwatch.section("a"):
        pass
    run = stepwatch.stop()
    assert run
    assert run.recorded
    assert os.fspath(run) == str(tmp_path / "run")
    assert str(run.path) == str(tmp_path / "run")
    assert len(run.spans) == 1


def test_stop_after_chdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stepwatch.start(out="relative")
    with stepwatch.section("a"):
        pass
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    run = stepwatch.stop()
    assert run is not None
    assert len(run.spans) == 1


def test_switched_off() -> None:
    code = """
import stepwatch
with stepwatch.record("x", out="never") as run:
    with stepwatch.section("a"):
        stepwatch.counter("loss", 1.0)
assert not run.recorded and run.path is None
for name in 'sections steps counters marks spans samples threads functions lines stacks'.split():
    table = getattr(run, name)
    assert len(table) == 0 and list(table) == [] and table[:5] == [] and repr(table)
    table.__arrow_c_stream__()
    table._repr_html_()
assert (run.name, run.processes, run.complete, run.info) == (None, 0, False, {})
assert run.notes == ["Nothing was recorded."]
report = run.report()
assert report.to_dict()["recorded"] is False
assert report.findings == report.sections == []
assert report.steps["recorded"] is False
assert str(report) == "Nothing was recorded.\\n" and report._repr_html_() and repr(report)
assert "nothing" in repr(run)
stepwatch.start()
# What a program does at its end does not depend on the switch.
assert str(stepwatch.stop().report()) == "Nothing was recorded.\\n"
"""
    result = run_python(code, STEPWATCH_ENABLED="0")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_run_of_nothing_has_no_path() -> None:
    result = run_python(
        "import os, stepwatch\n"
        "with stepwatch.record() as run: pass\n"
        "try: os.fspath(run)\n"
        "except ValueError as error: print(error)",
        STEPWATCH_ENABLED="0",
    )
    assert result.stdout == "nothing was recorded, so there is no path\n"


def test_a_recording_that_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    code = f"""
import stepwatch
with stepwatch.record(out={str(tmp_path / "file" / "run")!r}) as run:
    print("inside")
assert not run.recorded
"""
    result = run_python(code)
    assert (result.returncode, result.stdout) == (0, "inside\n")
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("config", [{"polcy": "ring"}, {"policy": 3}, {"out": 3}])
def test_wrong_options(config: dict[str, Any]) -> None:
    with pytest.raises(TypeError), stepwatch.record(**config):
        pass
    assert not stepwatch.is_recording()


def test_under_stepwatch_run(tmp_path: Path, stepwatch_cli: Path) -> None:
    """The outer recording is the supervisor's; what record() was told does not matter there."""
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import stepwatch
with stepwatch.record("inner", out={str(tmp_path / "never")!r}) as run:
    with stepwatch.section("work"):
        pass
assert stepwatch.is_recording()
print(run.path)
""",
        encoding="utf-8",
    )
    command = [str(stepwatch_cli), "run", "-o", str(tmp_path / "run"), "--no-report", "--"]
    result = subprocess.run(
        [*command, sys.executable, str(program)], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout.strip()) == (0, str(tmp_path / "run"))
    assert not (tmp_path / "never").exists()
    run = stepwatch.open(tmp_path / "run")
    paths = [row["path"] for row in run.sections if row["name"] not in ("gc", "print")]
    assert paths == [["inner"], ["inner", "work"]]
    assert run.info["exit_code"] == 0


class Fails:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __float__(self) -> float:
        raise self.error


def test_counter_takes_what_float_takes(tmp_path: Path) -> None:
    with stepwatch.record(out=tmp_path / "run") as run:
        stepwatch.counter("a", 1)
        stepwatch.counter("a", True)
        stepwatch.counter("a", 10**400)
        stepwatch.counter("a", -(10**400))
        stepwatch.counter("a", Fails(RuntimeError("two elements")))
    values = [row["value"] for row in run.counters]
    assert values[:4] == [1.0, 1.0, float("inf"), float("-inf")]
    assert values[4] != values[4]


@pytest.mark.parametrize("on", [False, True])
def test_counter_refuses_what_is_no_number(tmp_path: Path, on: bool) -> None:
    if on:
        stepwatch.start(out=tmp_path / "run", quiet=True)
    wrong: list[Callable[[Any], None]] = [
        lambda counter: counter("loss", "0.3"),
        lambda counter: counter("loss", None),
        lambda counter: counter(b"loss", 0.3),
        lambda counter: counter("loss"),
    ]
    for call in wrong:
        with pytest.raises(TypeError):
            call(stepwatch.counter)
    with pytest.raises(TypeError):
        stepwatch.mark(3)  # type: ignore[arg-type]


def test_counter_does_not_look_while_off() -> None:
    stepwatch.counter("loss", Fails(KeyboardInterrupt()))
    stepwatch.counter("loss", Fails(TypeError()))


def test_counter_lets_an_interrupt_pass(tmp_path: Path) -> None:
    with stepwatch.record(out=tmp_path / "run"), pytest.raises(KeyboardInterrupt):
        stepwatch.counter("loss", Fails(KeyboardInterrupt()))


def test_numpy_scalars(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    with stepwatch.record(out=tmp_path / "run") as run:
        stepwatch.counter("a", numpy.float32(0.5))
        stepwatch.counter("a", numpy.int64(3))
        stepwatch.counter("a", numpy.array(2.0))
    assert [row["value"] for row in run.counters] == [0.5, 3.0, 2.0]


# Daemon threads that want the GIL when the program ends.
_DAEMONS = """
import sys, threading, time
import stepwatch

stepwatch.start(out=sys.argv[1], report=False, functions=True)


def work():
    while True:
        with stepwatch.section("d"):
            sum(range(100))


for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
for _ in stepwatch.steps(range(20)):
    time.sleep(0.001)
sys.exit(7)
"""


def test_daemon_threads_do_not_crash_the_end(tmp_path: Path) -> None:
    program = tmp_path / "daemons.py"
    program.write_text(_DAEMONS)
    for attempt in range(10):
        out = tmp_path / str(attempt)
        command = [sys.executable, str(program), str(out)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (result.returncode, result.stderr) == (7, "")
        run = stepwatch.open(out)
        assert run.complete
        assert len(run.steps) == 20


_INTERRUPTED = """
import sys
import stepwatch

stepwatch.start(out=sys.argv[1], report=False, io=True)
for _ in stepwatch.steps(range(5)):
    with open(sys.argv[2]) as file:
        file.read()
raise KeyboardInterrupt
"""


def test_an_interrupt_that_ends_the_program_closes_the_file(tmp_path: Path) -> None:
    """Such a process ends by the signal: nothing that exit() calls is called."""
    program = tmp_path / "interrupted.py"
    program.write_text(_INTERRUPTED)
    data = tmp_path / "data.txt"
    data.write_text("some")
    command = [sys.executable, str(program), str(tmp_path / "out"), str(data)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == -signal.SIGINT
    assert result.stderr.splitlines()[-1] == "KeyboardInterrupt"
    run = stepwatch.open(tmp_path / "out")
    assert run.complete
    assert len(run.steps) == 5
    assert [row["opens"] for row in run.files if row["name"] == str(data)] == [5]
