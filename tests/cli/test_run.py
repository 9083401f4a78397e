"""stepwatch run: the program's output, exit code and signals stay its own."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
from pathlib import Path
from typing import Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_code_is_the_programs(stepwatch: Run, program: Path, code: int) -> None:
    result = stepwatch("run", "--", program, "steps", "3", "exit", str(code))
    assert result.returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_is_128_and_its_number(stepwatch: Run, program: Path, number: int) -> None:
    result = stepwatch("run", "-o", "out", "--", program, "steps", "3", "raise", str(int(number)))
    assert result.returncode == 128 + number
    assert signal.Signals(number).name in result.stderr


def test_not_found(stepwatch: Run, tmp_path: Path) -> None:
    for name in ("no-such-program", "./no-such-program"):
        result = stepwatch("run", "--", name)
        assert result.returncode == 127
        assert name in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert list(tmp_path.glob("runs/profiling/*")) == []


def test_not_executable(stepwatch: Run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program\n")
    result = stepwatch("run", "--", "./text")
    assert result.returncode == 126
    assert len(result.stderr.splitlines()) == 1


def test_streams_belong_to_the_program(stepwatch: Run, program: Path) -> None:
    words = ["print", "to stdout", "complain", "to stderr", "echo"]
    result = stepwatch("run", "--", program, *words, input="from stdin\n")
    assert result.stdout == "to stdout\nfrom stdin\n"
    assert "to stderr" in result.stderr


def test_run_directory(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    result = stepwatch("run", "--name", "my run/1", "--", program, "steps", "12")
    assert result.returncode == 0
    (folder,) = tmp_path.glob("runs/profiling/*Z-*")
    assert folder.name.endswith("Z-my_run_1")
    assert result.stderr.splitlines()[-1] == str(folder)
    names = {path.name for path in folder.iterdir()}
    assert {"run.json", "report.json"} <= names
    assert any(name.endswith(".stepwatch") for name in names)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    report = json.loads((folder / "report.json").read_text())
    assert report["run"]["name"] == "my run/1"
    assert report["run"]["exit"] == {"code": 0, "signal": None}
    assert report["run"]["complete"] is True
    assert report["steps"]["count"] == 12


def test_two_runs_in_one_second(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    for _ in range(3):
        assert stepwatch("run", "--", program).returncode == 0
    assert len(list(tmp_path.glob("runs/profiling/*Z-*"))) == 3


def test_asked_directory(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    result = stepwatch("run", "-oa/b/c", "--", program, "steps", "2")
    assert result.returncode == 0
    assert (tmp_path / "a" / "b" / "c" / "report.json").exists()
    again = stepwatch("run", "-o", "a/b/c", "--", program)
    assert again.returncode == 2
    assert "already holds a run" in again.stderr


@pytest.mark.parametrize("place", ["file/below", "file", "/proc/nowhere", ""])
def test_a_folder_that_cannot_be_made(
    stepwatch: Run, program: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").write_text("")
    result = stepwatch("run", "-o", place, "--", program, "print", "started")
    if place == "":
        assert result.returncode == 0  # an empty name means the usual place
        return
    assert result.returncode == 2
    assert "started" not in result.stdout
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    result = stepwatch("run", "-o", "locked/run", "--", program)
    assert result.returncode == 2
    result = stepwatch("run", "-o", "locked", "--", program)
    assert result.returncode == 2


def test_no_report(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    result = stepwatch("run", "-o", "out", "--no-report", "--", program, "steps", "3")
    assert result.returncode == 0
    assert not (tmp_path / "out" / "report.json").exists()
    assert result.stderr == f"{tmp_path / 'out'}\n"
    assert stepwatch("report", "out").returncode == 0


def test_nothing_recorded(stepwatch: Run, tmp_path: Path) -> None:
    result = stepwatch("run", "-o", "out", "--", "sh", "-c", "exit 5")
    assert result.returncode == 5
    assert "recorded nothing" in result.stderr
    assert "pkg-config" in result.stderr
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    assert run["schema"] == "stepwatch.run/1"
    assert run["exit"] == {"code": 5, "signal": None}


def test_settings_reach_the_recorder(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    words = ("--set", "events=off", "--set=name=chosen", "--")
    result = stepwatch("run", "-o", "out", *words, program, "steps", "5")
    assert result.returncode == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["run"]["name"] == "chosen"
    assert report["overhead"]["events"] == 0
    assert report["overhead"]["calls"] == 20


def test_switched_off(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    for words, extra in (
        (("--set", "enabled=false"), {}),
        ((), {"STEPWATCH_ENABLED": "0"}),
    ):
        result = stepwatch("run", *words, "--", program, "steps", "3", "exit", "4", extra=extra)
        assert result.returncode == 4
        assert result.stderr == ""
        assert not (tmp_path / "runs").exists()


def test_children_are_in_the_report(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    result = stepwatch("run", "-o", "out", "--", program, "steps", "2", "fork", "3")
    assert result.returncode == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["run"]["processes"] == 4
    (child,) = [row for row in report["sections"] if row["name"] == "child"]
    assert child["calls"] == 3


def test_a_killed_program_is_reported(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    result = stepwatch("run", "-o", "out", "--", program, "steps", "20", "raise", "9")
    assert result.returncode == 137
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["run"]["complete"] is False
    assert report["run"]["exit"] == {"code": None, "signal": 9}
    assert report["steps"]["count"] == 20
    assert any("killed" in note for note in report["notes"])


def test_secrets_are_hidden(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    words = ["--password", "hunter2", "--api-key=abc", "https://me:pw@host/x", "--lr=3"]
    result = stepwatch("run", "-o", "out", "--", program, *words)
    assert result.returncode == 0
    command = json.loads((tmp_path / "out" / "run.json").read_text())["command"]
    hidden = ["--password", "***", "--api-key=***", "https://***@host/x", "--lr=3"]
    assert command[1:] == hidden
    everything = (tmp_path / "out" / "report.json").read_text() + result.stderr
    assert "hunter2" not in everything
    assert "me:pw" not in everything


def test_within_another_run_the_outer_one_reports(
    stepwatch: Run, stepwatch_cli: Path, program: Path, tmp_path: Path
) -> None:
    words = [stepwatch_cli, "run", "--", program, "steps", "2", "exit", "6"]
    result = stepwatch("run", "-o", "out", "--", *words)
    assert result.returncode == 6
    assert result.stderr.count("Sections") == 1
    assert (tmp_path / "out" / "report.json").exists()
    assert not (tmp_path / "runs").exists()


def test_options_of_the_program_are_left_alone(stepwatch: Run, program: Path) -> None:
    result = stepwatch("run", "-o", "out", "--", program, "print", "--help", "print", "--")
    assert result.stdout == "--help\n--\n"
