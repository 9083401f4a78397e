"""Programs under limits and without /proc run as they would alone; what cannot be seen is said."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable

import pytest

pytestmark = pytest.mark.usefixtures("python_env")
Run = Callable[..., "subprocess.CompletedProcess[str]"]

PROGRAM = """
import sys, time
import stepwatch

held = []
for batch in stepwatch.steps(range(20)):
    with stepwatch.section("forward"):
        kept = bytearray(500_000)
        if batch < 12:
            held.append(open(sys.argv[0]))
    time.sleep(0.012)
print("done", len(held))
"""


def below(
    words: list[str], stepwatch_cli: Path, env: dict[str, str], tmp_path: Path
) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run the program below another one; return what it said, and the report."""
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    options = ["run", "--io", "--memory", "-o", str(tmp_path / "run"), str(script)]
    done = subprocess.run(
        [*words, str(stepwatch_cli), *options],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done 12\n"
    assert "Traceback" not in done.stderr
    path = tmp_path / "run" / "report.json"
    return done, json.loads(path.read_text()) if path.exists() else {}


def in_a_namespace(mount: str, *more: str) -> list[str]:
    words = ["unshare", "--mount", *more, "sh", "-c", f'{mount} && exec "$@"', "sh"]
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    if subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this process may not mount anything")
    return words


def sources(report: dict[str, Any]) -> dict[str, str | None]:
    return {row["name"]: row["why"] for row in report["monitor"]["sources"]}


def test_no_proc_at_all(stepwatch_cli: Path, env: dict[str, str], tmp_path: Path) -> None:
    words = in_a_namespace("mount -t tmpfs none /proc")
    _, report = below(words, stepwatch_cli, env, tmp_path)
    assert report["steps"]["count"] == 20
    assert report["memory"]["allocations"]["recorded"] is True
    assert report["io"]["recorded"] is True
    # Unknown is null.
    assert report["io"]["steps"] is None
    assert all(row["read_bytes"] is None for row in report["steps"]["worst"])
    why = sources(report)
    assert "/proc/self/io cannot be read" in str(why["io"])
    # What needs no file is there all the same.
    names = {row["name"] for row in report["monitor"]["series"]}
    assert "process.cpu_user" in names
    assert "process.rss" not in names


def test_proc_of_others_hidden(stepwatch_cli: Path, env: dict[str, str], tmp_path: Path) -> None:
    words = in_a_namespace("mount -t proc -o hidepid=2 none /proc", "--pid", "--fork")
    _, report = below(words, stepwatch_cli, env, tmp_path)
    assert report["steps"]["count"] == 20
    assert report["io"]["steps"]["readings"] > 10
    assert sources(report)["io"] is None


@pytest.mark.parametrize(
    "limit", ["--core=0:0", "--as=4000000000:4000000000", "--nofile=64:64", "--stack=1048576"]
)
def test_limits_that_leave_room(
    stepwatch_cli: Path, env: dict[str, str], tmp_path: Path, limit: str
) -> None:
    if shutil.which("prlimit") is None:
        pytest.skip("there is no prlimit")
    _, report = below(["prlimit", limit], stepwatch_cli, env, tmp_path)
    assert report["steps"]["count"] == 20
    assert report["memory"]["allocations"]["recorded"] is True
    assert report["io"]["recorded"] is True


def test_few_descriptors(stepwatch_cli: Path, env: dict[str, str], tmp_path: Path) -> None:
    """The monitor leaves most of them to the program."""
    if shutil.which("prlimit") is None:
        pytest.skip("there is no prlimit")
    _, report = below(["prlimit", "--nofile=32:32"], stepwatch_cli, env, tmp_path)
    assert report["steps"]["count"] == 20
    why = sources(report)
    assert why["process"] is None
    assert any("ulimit -n" in str(text) for text in why.values())


def test_small_files_only(stepwatch_cli: Path, env: dict[str, str], tmp_path: Path) -> None:
    if shutil.which("prlimit") is None:
        pytest.skip("there is no prlimit")
    done, report = below(["prlimit", "--fsize=40000:40000"], stepwatch_cli, env, tmp_path)
    # What there was no room for is counted and said, of the trace and of the report.
    said = [line for line in done.stderr.splitlines() if line.startswith("stepwatch: ")]
    assert "File too large" in said[0]
    assert "were lost" in said[0]
    assert report or "report.json could not be written" in said[1]
    assert all(path.stat().st_size <= 40_000 for path in (tmp_path / "run").iterdir())
