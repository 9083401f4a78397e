"""What the guides say about cost and safety, as promises of ours.

How long something takes is measured in bench/, where a command checks it: which one says
docs/compatibility/promises.md. Here is what can be counted.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..conftest import needs
from .conftest import ROOT, RunText

pytestmark = pytest.mark.once

PROMISES = ROOT / "docs" / "compatibility" / "promises.md"


def checked_by(row: str) -> list[str]:
    """Return the suites of bench/ that check a row, as the page says; they must exist."""
    line = next(x for x in PROMISES.read_text(encoding="utf-8").splitlines() if f"| {row} |" in x)
    suites = re.findall(r"`make bench-check SUITES=\"?([\w ]+)\"?`", line)
    names = [name for part in suites for name in part.split()]
    for name in names:
        assert (ROOT / "bench" / "suites" / f"{name}.py").is_file(), name
    return names


def last_json(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text.splitlines()[-1])
    return found


OFF = """
    import gc, json, os, sys, threading
    import stepwatch
    def work(section, decorated):
        for _ in range(20000):
            with section:
                decorated()
    profiler = stepwatch.Profiler("off", enabled=False)
    both = [
        (stepwatch.section("a"), stepwatch.profile("b")(lambda: None)),
        (profiler.section("a"), profiler.profile("b")(lambda: None)),
    ]
    for pair in both:
        work(*pair)
    gc.collect()
    blocks, threads = sys.getallocatedblocks(), len(os.listdir("/proc/self/task"))
    files = sorted(os.listdir("."))
    for pair in both:
        work(*pair)
    gc.collect()
    print(json.dumps({
        "blocks": sys.getallocatedblocks() - blocks,
        "threads": len(os.listdir("/proc/self/task")) - threads,
        "files": sorted(os.listdir(".")) == files,
        "rows": profiler.rows(),
        "recording": stepwatch.is_recording(),
    }))
"""


def test_p_01_off_costs_nothing_that_stays(tmp_path: Path, run_text: RunText) -> None:
    found = last_json(run_text(tmp_path, "", before=OFF).ok().out)
    assert found["blocks"] < 100
    assert found["threads"] == 0
    assert found["files"]
    assert found["rows"] == []
    assert not found["recording"]
    assert {"cost", "python_sections"} <= set(checked_by("P-01"))


ON = """
    import gc, json, sys
    import stepwatch
    profiler = stepwatch.Profiler("on")
    section = profiler.section("a")
    def work(n):
        for _ in range(n):
            with section:
                pass
    work(200000)  # as many single times as are kept
    gc.collect()
    blocks = sys.getallocatedblocks()
    work(100000)
    gc.collect()
    print(json.dumps({"blocks": sys.getallocatedblocks() - blocks, "row": profiler.row("a")}))
"""


def test_p_02_on_it_is_counted_exactly_in_memory_that_does_not_grow(
    tmp_path: Path, run_text: RunText
) -> None:
    found = last_json(run_text(tmp_path, "", before=ON).ok().out)
    assert found["row"]["calls"] == 300000
    assert found["blocks"] < 100
    assert {"cost", "python_sections"} <= set(checked_by("P-02"))


# What recording adds to a step: calls in Python, system calls, bytes. How long it takes depends on
# the machine; these do not.
STEPS = """
    import json, os, sys
    import torch
    from torch import nn
    import stepwatch
    import stepwatch.torch
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 8, 3), nn.ReLU(),
                          nn.Flatten(), nn.Linear(8 * 24 * 24, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(8, 1, 28, 28), torch.randint(0, 10, (8,))
    def steps(count):
        for _ in range(count):
            stepwatch.step()
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    calls = 0
    def see(frame, event, argument):
        global calls
        calls += event == "call"
    def calls_of_a_step():
        global calls
        calls = 0
        sys.setprofile(see)
        steps(20)
        sys.setprofile(None)
        return calls / 20
    def system_calls():
        with open("/proc/self/io") as file:
            found = dict(line.split(": ") for line in file)
        return int(found["syscr"]) + int(found["syscw"])
    steps(3)
    bare = calls_of_a_step()
    stepwatch.start(out="run", quiet=True, monitor_interval_s=0, sampler_hz=0)
    hooks = stepwatch.torch.auto(model, optimizer)
    steps(20)
    recorded = calls_of_a_step()
    before = system_calls()
    steps(400)
    system = (system_calls() - before) / 400
    hooks.remove()
    stepwatch.stop()
    size = sum(os.path.getsize(os.path.join("run", name)) for name in os.listdir("run"))
    print(json.dumps({"added": recorded - bare, "system": system, "bytes": size / 441}))
"""


def test_p_03_what_recording_adds_to_a_step_of_the_cnn(
    tmp_path: Path, run_text: RunText, stepwatch_cli: Path
) -> None:
    needs("torch")
    found = last_json(run_text(tmp_path, "", before=STEPS).ok().out)
    # Seven modules, forward and backward; the optimizer; the step.
    assert 0 < found["added"] <= 7 * 6
    assert found["system"] <= 3, "a step goes into memory that is a file's"
    assert found["bytes"] <= 4096
    report = json.loads(
        subprocess.run(
            [stepwatch_cli, "report", tmp_path / "run", "--json"], capture_output=True, check=True
        ).stdout
    )
    assert report["steps"]["count"] >= 440, "and the steps are in it"
    assert checked_by("P-03") == ["guides", "python_hooks", "python_training"]


EVERY = """
    import json
    from ml_ops.profile import should_profile
    print(json.dumps({"steps": [step for step in range(1000) if should_profile(step, 100)]}))
"""


def test_p_04_one_step_in_a_hundred_is_profiled(tmp_path: Path, run_text: RunText) -> None:
    pytest.importorskip("stepwatch.compat.ml_ops.profile")
    done = run_text(tmp_path, "", before=EVERY, ENABLE_PROFILING="true").ok()
    assert last_json(done.out)["steps"] == list(range(0, 1000, 100))
    assert "guides" in checked_by("P-04")


CALLS = """
import cProfile, sys
import stepwatch
def leaf():
    pass
def work(count):
    for _ in range(count):
        leaf()
how, count = sys.argv[1], int(sys.argv[2])
if how == "ours":
    with stepwatch.functions() as profile:
        work(count)
    (row,) = [row for row in profile.rows() if row["name"] == "leaf"]
    assert row["calls"] == count
else:
    cProfile.Profile().runcall(work, count)
"""


def test_p_05_fewer_instructions_than_c_profile(tmp_path: Path, guide_env: dict[str, str]) -> None:
    if shutil.which("valgrind") is None:
        pytest.skip("valgrind is not installed")
    program = tmp_path / "calls.py"
    program.write_text(CALLS, encoding="utf-8")

    def instructions(how: str, calls: int) -> int:
        counting = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        done = subprocess.run(
            [*counting, sys.executable, "-S", str(program), how, str(calls)],
            env={**guide_env, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=True,
        )
        found = re.search(r"Collected : (\d+)", done.stderr)
        assert found is not None, done.stderr
        return int(found[1])

    # Of so many calls more; what starting and reading costs is in both.
    ours, theirs = (
        (instructions(how, 60_000) - instructions(how, 20_000)) / 40_000
        for how in ("ours", "cProfile")
    )
    assert 0 < ours < theirs
    assert "python_functions" in checked_by("P-05")


LINES = """
    import stepwatch
    lines = stepwatch.Lines()
    def other(i):
        return i
    @lines
    def chosen(n):
        total = 0
        for i in range(n):
            total += other(i)
        return total
    chosen(10)
    lines.print()
"""


def test_p_06_other_functions_have_no_lines(tmp_path: Path, run_text: RunText) -> None:
    out = run_text(tmp_path, "", before=LINES).ok().out
    assert "total += other(i)" in out
    assert "return i" not in out
    assert "python_lines" in checked_by("P-06")


MONITOR = """
    import json, os, time
    import stepwatch
    before = len(os.listdir("/proc/self/task"))
    stepwatch.start(out="run", quiet=True, monitor_interval_s=0.01, sampler_hz=0)
    time.sleep(0.3)
    during = len(os.listdir("/proc/self/task"))
    run = stepwatch.stop()
    after = len(os.listdir("/proc/self/task"))
    print(json.dumps({"before": before, "during": during, "after": after}))
"""


def test_p_07_the_monitor_is_one_thread_that_ends(tmp_path: Path, run_text: RunText) -> None:
    found = last_json(run_text(tmp_path, "", before=MONITOR).ok().out)
    # The recorder's helper and the monitor.
    assert 1 <= found["during"] - found["before"] <= 2
    assert found["after"] == found["before"]
    assert "monitor" in checked_by("P-07")


CAP = """
    import json, os
    import stepwatch
    stepwatch.start(out="run", quiet=True, policy="ring", max_mb=4, monitor_interval_s=0)
    section = stepwatch.section("a")
    for _ in range(1_000_000):
        with section:
            pass
    run = stepwatch.stop()
    size = sum(os.path.getsize(os.path.join("run", name)) for name in os.listdir("run"))
    print(json.dumps({"size": size}))
"""


def test_p_08_memory_and_files_are_bounded_and_what_was_lost_is_counted(
    tmp_path: Path, run_text: RunText, stepwatch_cli: Path
) -> None:
    found = last_json(run_text(tmp_path, "", before=CAP).ok().out)
    assert found["size"] <= 5 << 20
    report = json.loads(
        subprocess.run(
            [stepwatch_cli, "report", tmp_path / "run", "--json"],
            capture_output=True,
            check=True,
        ).stdout
    )
    assert report["overhead"]["overwritten"] > 0
    (section,) = (row for row in report["sections"] if row["name"] == "a")
    assert section["calls"] == 1_000_000
    assert "cap" in checked_by("P-08")


SAFE = """
    import os, signal, sys, threading
    import stepwatch
    stepwatch.start(out="run", quiet=True)
    def work():
        for _ in range(1000):
            with stepwatch.section("threads"):
                pass
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGUSR1, lambda *_: work())
    os.kill(os.getpid(), signal.SIGUSR1)
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    os.waitpid(child, 0)
    stepwatch.step_begin()
    stepwatch.step_end()
    if sys.argv[1:] == ["raise"]:
        raise RuntimeError("the program's own")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("how", ["raise", "kill"])
def test_p_09_threads_forks_signals_and_a_crash_lose_nothing(
    tmp_path: Path, run_text: RunText, stepwatch_cli: Path, how: str
) -> None:
    text = SAFE.replace('sys.argv[1:] == ["raise"]', str(how == "raise"))
    done = run_text(tmp_path, "", before=text)
    assert done.code == (1 if how == "raise" else -signal.SIGKILL)
    if how == "raise":
        assert "RuntimeError: the program's own" in done.err
    report = json.loads(
        subprocess.run(
            [stepwatch_cli, "report", tmp_path / "run", "--json"], capture_output=True, check=True
        ).stdout
    )
    calls = sum(row["calls"] for row in report["sections"] if row["name"] == "threads")
    assert calls >= 9000
    assert report["steps"]["count"] == 1


def test_p_10_the_report_states_its_own_cost(
    tmp_path: Path, stepwatch_cli: Path, guide_env: dict[str, str]
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import stepwatch\nfor _ in stepwatch.steps(range(200)):\n    sum(range(10000))\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [stepwatch_cli, "run", "-o", tmp_path / "run", script],
        env={**guide_env, "STEPWATCH_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    overhead = json.loads((tmp_path / "run" / "report.json").read_text())["overhead"]
    assert overhead["low"] <= overhead["percent"] <= overhead["high"]
    assert overhead["seconds"] > 0
    assert overhead["how"]
    assert re.search(r"Recording  cost \S+ % of the time", done.stderr)
    assert "overhead" in checked_by("P-10")
