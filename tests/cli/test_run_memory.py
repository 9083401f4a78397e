"""Memory below ``stepwatch run``: growth by default, allocations and their stacks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

LEAK = """
import time
import stepwatch

def make(size):
    return bytearray(size)

def train(size):
    history = []
    for batch in stepwatch.steps(range(70)):
        with stepwatch.section("forward"):
            out = make(500_000)
        time.sleep(0.012)
        history.append(out if size else 1)

train({size})
"""


def report(stepwatch: Run, tmp_path: Path, size: int, *words: str) -> dict[str, Any]:
    script = tmp_path / "leak.py"
    script.write_text(LEAK.replace("{size}", str(size)))
    done = stepwatch("run", "-o", str(tmp_path / "run"), *words, str(script))
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads((tmp_path / "run" / "report.json").read_text())
    return result


def growth(found: dict[str, Any]) -> dict[str, Any] | None:
    kinds = [finding for finding in found["findings"] if finding["kind"] == "memory_growth"]
    return kinds[0] if kinds else None


def test_growth_is_found_by_default(stepwatch: Run, tmp_path: Path) -> None:
    found = report(stepwatch, tmp_path, 1)
    finding = growth(found)
    assert finding is not None
    assert abs(finding["evidence"]["mb_per_step"] - 0.5) < 0.025
    assert finding["evidence"]["p_value"] < 0.01
    assert found["memory"]["allocations"]["recorded"] is False


def test_healthy_memory_is_silent(stepwatch: Run, tmp_path: Path) -> None:
    found = report(stepwatch, tmp_path, 0)
    assert growth(found) is None
    assert not [note for note in found["notes"] if "spike" in note]


SPIKE = """
import time
import stepwatch

held = []
for batch in stepwatch.steps(range(60)):
    held.clear()
    if batch in (30, 45):
        held.append(bytearray((200 if batch == 30 else 100) << 20))
    time.sleep(0.012)
"""


def test_spikes_are_a_note(stepwatch: Run, tmp_path: Path) -> None:
    script = tmp_path / "spike.py"
    script.write_text(SPIKE)
    done = stepwatch("run", "-o", str(tmp_path / "run"), str(script))
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "run" / "report.json").read_text())
    (note,) = [note for note in found["notes"] if note.startswith("Memory has a spike")]
    assert "at step 30: " in note
    assert "there are 2 of them" in note
    assert growth(found) is None


def test_allocations_of_a_program(stepwatch: Run, tmp_path: Path) -> None:
    found = report(stepwatch, tmp_path, 1, "--memory", "--set", "memory_sample_kb=32")
    memory = found["memory"]["allocations"]
    assert memory["recorded"] is True
    forward = next(row for row in memory["sections"] if row["path"][-1] == "forward")
    assert abs(forward["allocated_bytes"] - 70 * 500_000) < 0.05 * 70 * 500_000
    assert abs(forward["peak_bytes"] - 500_000) < 0.05 * 500_000
    site = next(row for row in memory["sites"] if row["function"] == "make")
    assert abs(site["peak_bytes"] - 35_000_000) < 0.05 * 35_000_000
    assert site["growth"]["grows"] is True
    assert abs(site["growth"]["bytes_per_step"] - 500_000) < 25_000
    finding = growth(found)
    assert finding is not None
    assert any("leak.py:6, make" in advice for advice in finding["advice"])
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    part = page.split('<section id="memory">')[1].split("</section>")[0]
    assert "<code>leak.py:6</code></td><td>make</td>" in part
    assert "forward</td>" in part
    assert "Memory over time" in part

    for view in ("peak", "allocated"):
        done = stepwatch("export", str(tmp_path / "run"), "--to", "collapsed", "--memory", view)
        assert done.returncode == 0, done.stderr
        line = next(line for line in done.stdout.splitlines() if ";make (" in line)
        assert int(line.rpartition(" ")[2]) > 30_000_000
    done = stepwatch("export", str(tmp_path / "run"), "--to", "speedscope", "--memory", "peak")
    assert "make" in done.stdout


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--memory", "peak"), 3, "stepwatch run --memory"),
        (("--memory", "size"), 2, "takes peak, live or allocated"),
    ],
)
def test_no_allocations(
    stepwatch: Run, tmp_path: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    report(stepwatch, tmp_path, 0)
    done = stepwatch("export", str(tmp_path / "run"), "--to", "collapsed", *words)
    assert done.returncode == code
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


# Workers by fork, threads that come and go, and a chunk of every size.
BUSY = """
import atexit, os, threading
import stepwatch

def churn(times):
    for _ in range(times):
        [bytearray(i * 97 % 5000) for i in range(60)]

atexit.register(churn, 2)
for batch in stepwatch.steps(range(30)):
    with stepwatch.section("forward"):
        kept = bytearray(500_000)
    threads = [threading.Thread(target=churn, args=(5,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    if batch % 10 == 0:
        pid = os.fork()
        if pid == 0:
            churn(3)
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    for thread in threads:
        thread.join()
"""


@pytest.mark.parametrize("name", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
@pytest.mark.usefixtures("python_env")
def test_another_malloc(stepwatch: Run, tmp_path: Path, name: str) -> None:
    done = subprocess.run(
        ["/bin/true"], env={"LD_PRELOAD": name}, capture_output=True, text=True, check=False
    )
    if done.stderr:
        pytest.skip(f"{name} is not here")
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    words = ["--memory", "--io", "--set", "memory_sample_kb=4", "-o", str(tmp_path / "run")]
    done = stepwatch("run", *words, str(script), extra={"LD_PRELOAD": name})
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "run" / "report.json").read_text())
    memory = found["memory"]["allocations"]
    forward = next(row for row in memory["sections"] if row["path"][-1] == "forward")
    # Sizes are in the steps of that malloc.
    assert 30 * 500_000 < forward["allocated_bytes"] < 30 * 640_000
    assert forward["calls"] == 30
