"""stepwatch doctor."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path
from typing import Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_text_and_json_agree(stepwatch: Run) -> None:
    text = stepwatch("doctor")
    document = json.loads(stepwatch("doctor", "--json").stdout)
    assert text.returncode == 0
    assert document["schema"] == "stepwatch.doctor/1"
    assert document["ok"] is True
    for check in document["checks"]:
        assert check["status"] in ("ok", "warn")
        assert check["text"].endswith(".")
        assert check["check"] in text.stdout
    assert "process_vm_readv" in {check["check"] for check in document["checks"]}
    for option in document["options"]:
        assert option["option"] in text.stdout
        assert option["source"] == "default"


def test_sixty_columns(stepwatch: Run) -> None:
    result = stepwatch("doctor", extra={"COLUMNS": "60"})
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 60


def test_options_of_the_environment(stepwatch: Run) -> None:
    extra = {"STEPWATCH_MAX_MB": "12", "STEPWATCH_POLICY": "nonsense"}
    document = json.loads(stepwatch("doctor", "--json", extra=extra).stdout)
    options = {option["option"]: option for option in document["options"]}
    assert options["max_mb"]["value"] == "12"
    assert options["max_mb"]["source"] == "environment"
    assert options["policy"]["value"] == "auto"
    assert options["policy"]["problem"]


@pytest.mark.usefixtures("python_env")
@pytest.mark.parametrize(
    ("extra", "status", "words"),
    [
        ({}, "ok", "that of STEPWATCH_PYTHON, and are recorded"),
        ({"STEPWATCH_PYTHON": "/nowhere"}, "warn", "There is no Python for scripts"),
        ({"STEPWATCH_PACKAGE": "/nowhere"}, "warn", "it has no package 'stepwatch'"),
    ],
)
def test_python(stepwatch: Run, extra: dict[str, str], status: str, words: str) -> None:
    document = json.loads(stepwatch("doctor", "--json", extra=extra).stdout)
    (check,) = [check for check in document["checks"] if check["check"] == "python"]
    assert check["status"] == status
    assert words in check["text"]


def test_nowhere_to_write(stepwatch: Run, tmp_path: Path) -> None:
    result = stepwatch("doctor", "--json", extra={"STEPWATCH_OUT": "/proc/nowhere"})
    assert result.returncode == 1
    document = json.loads(result.stdout)
    assert document["ok"] is False
    (failed,) = [check for check in document["checks"] if check["status"] == "fail"]
    assert failed["check"] == "run folder"
    assert stepwatch("doctor", extra={"STEPWATCH_OUT": str(tmp_path / "a/b")}).returncode == 0


def test_limits_are_shown(stepwatch: Run) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 23, resource.RLIM_INFINITY))

    result = stepwatch("doctor", "--json", preexec_fn=limit)
    checks = {check["check"]: check for check in json.loads(result.stdout)["checks"]}
    assert checks["file size"]["status"] == "warn"
    assert "8.0 MiB" in checks["file size"]["text"] or "8 MiB" in checks["file size"]["text"]


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs /dev/shm")
def test_what_dead_processes_left_is_removed(stepwatch: Run) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    folder = Path(f"/dev/shm/stepwatch-{os.geteuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    orphan = folder / f"{gone.pid}-00000000deadbeef.hot"
    alive = folder / f"{os.getpid()}-00000000deadbeef.hot"
    try:
        orphan.write_bytes(b"x" * 5000)
        alive.write_bytes(b"x")
        found = stepwatch("doctor").stdout
        assert "--clean" in found
        assert orphan.exists()
        assert "removed" in stepwatch("doctor", "--clean").stdout
        assert not orphan.exists()
        assert alive.exists()
    finally:
        orphan.unlink(missing_ok=True)
        alive.unlink(missing_ok=True)
