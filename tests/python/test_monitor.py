"""stepwatch.monitor: what it sees, when it starts and stops, forks, and what the tables show."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import _core

pytestmark = pytest.mark.usefixtures("no_recording")


def rows(run: stepwatch.Run | None) -> dict[str, dict[str, Any]]:
    assert run is not None
    return {row["name"]: row for row in run.monitor}


def run_python(code: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("STEPWATCH")}
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**env, **environment},
        timeout=120,
    )


def test_the_shortest_run_has_two_looks(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True, monitor_interval_s=60)
    run = stepwatch.stop()
    table = rows(run)
    assert table["process.rss"]["samples"] == 2
    assert table["process.cpu_user"]["samples"] == 1
    assert table["process.cpu_user"]["growth"] >= 0
    assert table["process.rss"]["min"] > 1 << 20
    assert run is not None
    assert len([row for row in run.monitor_values if row["name"] == "process.rss"]) == 2


def test_off_is_off(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True)
    assert not stepwatch.monitor.running
    assert stepwatch.monitor.interval is None
    assert stepwatch.monitor.series() == {}
    run = stepwatch.stop()
    assert run is not None
    assert len(run.monitor) == len(run.monitor_values) == 0
    monitor = json.loads(run._report_json())["monitor"]
    assert monitor == {
        "recorded": False,
        "why": "The monitor did not run: monitor_interval_s is 0.",
    }


def test_without_a_recording_nothing_happens() -> None:
    assert stepwatch.monitor.start() is False
    assert not stepwatch.monitor.running
    stepwatch.monitor.stop()
    with stepwatch.monitor(0.5) as monitor:
        assert monitor is stepwatch.monitor
        assert not monitor.running
    assert repr(stepwatch.monitor) == "<stepwatch.monitor: stopped>"


def test_start_and_stop(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True)
    assert stepwatch.monitor.start(0.5)
    assert stepwatch.monitor.start(0.25)  # harmless
    assert stepwatch.monitor.interval == 0.5
    assert repr(stepwatch.monitor) == "<stepwatch.monitor: every 0.5 s>"
    stepwatch.monitor.stop()
    stepwatch.monitor.stop()
    assert not stepwatch.monitor.running
    with stepwatch.monitor(0.5):
        with stepwatch.monitor():  # runs already: the outer one ends it
            pass
        assert stepwatch.monitor.running
    assert not stepwatch.monitor.running
    seen = stepwatch.monitor.series("process.rss")
    assert list(seen) == ["process.rss"]
    assert len(seen["process.rss"]) == 4
    assert all(value > 0 for _, value in seen["process.rss"])
    assert seen["process.rss"][-1][0] <= time.monotonic()
    assert stepwatch.monitor.series("nothing") == {}
    run = stepwatch.stop()
    # What was seen can still be looked at.
    assert len(stepwatch.monitor.series()["process.rss"]) == 4
    assert rows(run)["process.rss"]["samples"] == 4


@pytest.mark.parametrize("interval", [0, 0.001, -1, 4000, float("nan"), float("inf")])
def test_intervals_that_make_no_sense(interval: float, tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True)
    with pytest.raises(ValueError, match=r"from 0\.01 to 3600 seconds"):
        stepwatch.monitor.start(interval)
    assert not stepwatch.monitor.running


def test_wrong_types(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True)
    with pytest.raises(TypeError):
        stepwatch.monitor.start("often")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _core.monitor_start(1, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        _core.monitor_worker("x")  # type: ignore[arg-type]


def test_looks_that_the_program_asks_for(tmp_path: Path) -> None:
    assert stepwatch.monitor.look() is False
    with stepwatch.record("r", out=tmp_path / "r", monitor_interval_s=0, quiet=True):
        assert stepwatch.monitor.look() is False
        with stepwatch.monitor(3600):
            assert stepwatch.monitor.look() is True  # So the look at its start is over.
            began = time.monotonic()
            kept: list[mmap.mmap] = []
            for megabytes in (10, 30, 50):
                area = mmap.mmap(-1, megabytes << 20)  # Of its own, whatever was freed before.
                for page in range(0, len(area), mmap.PAGESIZE):
                    area[page] = 1
                kept.append(area)
                assert stepwatch.monitor.look() is True
            seen = stepwatch.monitor.series("process.rss")["process.rss"]
            asked = [value for moment, value in seen if moment >= began]
            assert len(asked) == 3
            assert asked[1] - asked[0] > 25 << 20
            assert asked[2] - asked[1] > 45 << 20
            threads = [threading.Thread(target=stepwatch.monitor.look) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert stepwatch.monitor.look() is False


@pytest.mark.usefixtures("plain_memory")
def test_memory_that_is_known(tmp_path: Path) -> None:
    size = 64 << 20
    stepwatch.start(out=tmp_path / "run", quiet=True)
    with stepwatch.monitor(60):
        pass
    with mmap.mmap(-1, size) as memory:
        memory.write(b"x" * size)
        with stepwatch.monitor(60):
            pass
    run = stepwatch.stop()
    assert run is not None
    values = [row["value"] for row in run.monitor_values if row["name"] == "process.rss"]
    assert len(values) == 4
    assert values[2] - values[1] >= 0.95 * size
    table = rows(run)
    assert table["process.rss"]["max"] == max(values)
    assert table["process.rss"]["unit"] == "B"
    assert table["system.memory"]["last"] > table["process.rss"]["last"]


def test_work_that_is_known(tmp_path: Path) -> None:
    """CPU time and bytes written, compared with what the program counts itself."""
    stepwatch.start(out=tmp_path / "run", quiet=True, monitor_interval_s=60)
    before = time.process_time()
    while time.process_time() - before < 0.3:
        sum(range(1000))
    (tmp_path / "file").write_bytes(b"x" * 1_000_000)
    used = time.process_time() - before
    run = stepwatch.stop()
    table = rows(run)
    cpu = table["process.cpu_user"]["growth"] + table["process.cpu_system"]["growth"]
    assert cpu >= 0.95 * used
    assert table["process.written"]["growth"] >= 1_000_000
    assert table["training.cpu"]["source"] == "training"


def test_steps_phases_and_sections(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True)
    stepwatch.step_begin()
    with stepwatch.section("forward"):
        with stepwatch.monitor(60):
            time.sleep(0.01)
        with stepwatch.section("inner"), stepwatch.monitor(60):
            pass
    stepwatch.step_end()
    run = stepwatch.stop()
    assert run is not None
    report = json.loads(run._report_json())
    by_name = {series["name"]: series for series in report["monitor"]["series"]}
    rss = by_name["process.rss"]
    assert rss["steps"]["samples"] == 4
    assert [(row["phase"], row["samples"]) for row in rss["phases"]] == [("forward", 4)]
    assert [(row["path"], row["samples"]) for row in rss["sections"]] == [
        (["forward"], 4),
        (["forward", "inner"], 2),
    ]
    cpu = by_name["process.cpu_user"]
    assert cpu["steps"]["samples"] == 2
    assert [(row["path"], row["samples"]) for row in cpu["sections"]] == [
        (["forward"], 2),
        (["forward", "inner"], 1),
    ]
    assert by_name["system.memory"]["sections"] == []


def test_the_environment_and_a_file_start_it(tmp_path: Path) -> None:
    code = (
        "import stepwatch; stepwatch.start(quiet=True);"
        "print(stepwatch.monitor.interval); stepwatch.stop()"
    )
    done = run_python(code, STEPWATCH_OUT=str(tmp_path / "a"), STEPWATCH_MONITOR_INTERVAL_S="0.5")
    assert (done.stdout, done.stderr) == ("0.5\n", "")
    file = tmp_path / "stepwatch.toml"
    file.write_text("monitor_interval_s = 2\nmonitor_pss_s = 1\n")
    done = run_python(code, STEPWATCH_OUT=str(tmp_path / "b"), STEPWATCH_CONFIG=str(file))
    assert (done.stdout, done.stderr) == ("2.0\n", "")
    assert rows(stepwatch.open(tmp_path / "b"))["process.pss"]["min"] > 0
    assert "process.pss" not in rows(stepwatch.open(tmp_path / "a"))


FORK = """
import os, stepwatch, threading, time
stepwatch.start(out={out!r}, monitor_interval_s=0.05)
for _ in range(5):
    pid = os.fork()
    if pid == 0:
        with stepwatch.section("child"):
            running = stepwatch.monitor.running
        stepwatch.stop()
        os._exit(3 if running else 0)
    assert os.waitpid(pid, 0)[1] == 0
    # It comes back by itself, without a step.
    end = time.monotonic() + 30
    while "stepwatch-mon" not in names() and time.monotonic() < end:
        time.sleep(0.01)
    assert "stepwatch-mon" in names()
stepwatch.stop()
"""
NAMES = """
from pathlib import Path
def names():
    found = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found.append((task / "comm").read_text().strip())
        except OSError:
            pass
    return found
"""


def test_forks_are_silent_and_it_comes_back(tmp_path: Path) -> None:
    done = run_python(NAMES + FORK.format(out=str(tmp_path / "run")), "-W", "error")
    assert (done.returncode, done.stderr) == (0, "")
    run = stepwatch.open(tmp_path / "run")
    assert run.processes == 6
    with_monitor = {row["pid"] for row in run.monitor}
    assert len(with_monitor) == 1  # children are seen by their parent's
    assert rows(run)["process.rss"]["samples"] >= 2
    assert rows(run)["process.cpu_user"]["growth"] >= 0  # the kernel counts in hundredths


def test_an_end_without_stop(tmp_path: Path) -> None:
    """exit() stops it; a killed program leaves what it had seen."""
    code = (
        "import os, stepwatch, sys, time;"
        "stepwatch.start(out=sys.argv[1], quiet=True, monitor_interval_s=0.05)\n"
        "end = time.monotonic() + 30\n"
        "while len(stepwatch.monitor.series('process.rss').get('process.rss', [])) < 3:\n"
        "    assert time.monotonic() < end; time.sleep(0.02)\n"
        "if sys.argv[2] == 'kill': os.kill(os.getpid(), 9)\n"
    )
    for how, code_expected in (("exit", 0), ("kill", -9)):
        out = tmp_path / how
        done = subprocess.run([sys.executable, "-c", code, out, how], check=False, timeout=120)
        assert done.returncode == code_expected
        assert rows(stepwatch.open(out))["process.rss"]["samples"] >= 3


def test_threads_start_and_stop_it_at_once(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True)

    def toggle() -> None:
        for _ in range(20):
            stepwatch.monitor.start(0.01)
            stepwatch.monitor.stop()

    threads = [threading.Thread(target=toggle) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run = stepwatch.stop()
    assert rows(run)["process.rss"]["samples"] >= 2


def test_descriptors_that_the_program_closes(tmp_path: Path) -> None:
    """A daemon closes everything it did not open: nothing of its own is read or closed for it."""
    code = (
        "import os, stepwatch, sys, time\n"
        "stepwatch.start(out=sys.argv[1], quiet=True, monitor_interval_s=0.02)\n"
        "os.closerange(3, 1000)\n"
        "held = [os.open('/dev/null', os.O_RDONLY) for _ in range(300)]\n"
        "time.sleep(0.1)\n"
        "stepwatch.monitor.stop()\n"
        "[os.fstat(fd) for fd in held]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "run"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_workers_are_counted_apart(tmp_path: Path) -> None:
    stepwatch.start(out=tmp_path / "run", quiet=True)
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
    try:
        _core.monitor_worker(child.pid)
        with stepwatch.monitor(60):
            pass
    finally:
        child.communicate()
    table = rows(stepwatch.stop())
    assert table["workers.count"]["max"] == 1
    assert table["children.count"]["max"] >= 1
    assert table["workers.rss"]["max"] > 0
