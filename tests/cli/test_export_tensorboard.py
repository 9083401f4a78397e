"""stepwatch export --to tensorboard: a folder with an event file."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def recorded(stepwatch: Run, program: Path, tmp_path: Path) -> Path:
    result = stepwatch(
        "run", "-o", "recorded", "--set", "history=off", "--", program, "steps", "30"
    )
    assert result.returncode == 0, result.stderr
    return tmp_path / "recorded"


def test_a_folder_with_one_file(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    result = stepwatch("export", recorded, "--to", "tensorboard", "-o", "logs/a")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    (file,) = (tmp_path / "logs" / "a").iterdir()
    data = file.read_bytes()
    assert file.name.startswith("events.out.tfevents.")
    for part in (b"brain.Event:2", b"step/time_ms", b"charts/steps", b"\x89PNG\r\n", b"report"):
        assert part in data
    assert data.count(b"step/time_ms") == 30


def test_it_needs_a_folder(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    for words in ((), ("-o", "-")):
        result = stepwatch("export", recorded, "--to", "tensorboard", *words)
        assert result.returncode == 2
        assert "tensorboard is a folder of files; name it with -o" in result.stderr
    result = stepwatch("export", recorded, "--to", "tensorboard", "-o", "x", "--lines")
    assert result.returncode == 2
    assert "--lines means nothing for the format tensorboard" in result.stderr
    (tmp_path / "file").write_text("")
    result = stepwatch("export", recorded, "--to", "tensorboard", "-o", "file/logs")
    assert result.returncode == 3
    assert "no file can be made in file/logs" in result.stderr
