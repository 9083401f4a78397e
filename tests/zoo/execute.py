"""Running the programs of the zoo, with and without the recorder."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT_S = 600
# The last line of each program says what it did, by its own clock.
TRAINED = re.compile(r"^trained (\d+) steps in ([\d.]+) s$", re.MULTILINE)
# What a kept run directory has beside the recording: that line, or why there is none.
SAID = "said.txt"


@dataclass(frozen=True)
class Outcome:
    """What a run left. ``error`` is a sentence where it left nothing that can be judged."""

    steps: int | None = None
    seconds: float | None = None
    report: dict[str, Any] | None = None
    error: str | None = None


def environment(folder: Path) -> dict[str, str]:
    """Return the surroundings of a program: nothing but its folder and the Python decides."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STEPWATCH_", "PYTHON"))}
    return {**kept, "PYTHONPATH": str(folder), "STEPWATCH_PYTHON": sys.executable}


Report = tuple[dict[str, Any] | None, str | None]


def parse_report(text: str, name: str) -> Report:
    """Take a text as a report: the report, or what is wrong with it."""
    try:
        report = json.loads(text)
    except ValueError as error:
        return None, f"{name} cannot be read: {error}"
    if not isinstance(report, dict) or report.get("schema") != "stepwatch.report/1":
        return None, f"{name} is none of schema stepwatch.report/1"
    return report, None


def read_report(path: Path) -> Report:
    """Read a report: the report, or what is wrong with it."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None, "it left no report.json"
    except (OSError, ValueError) as error:
        return None, f"its report.json cannot be read: {error}"
    return parse_report(text, "its report.json")


def make_report(run: Path, cli: Path) -> Report:
    """Let ``cli`` report on a recording: the report, or why there is none."""
    try:
        code, out, err = start([str(cli), "report", str(run), "--json"], run, str(run.parent))
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, f"there is no report on it: {error}"
    if code:
        return None, f"the report on it ended with code {code}: {last_line(err)}"
    return parse_report(out, "the report on it")


def last_line(text: str) -> str:
    """Return the last line that says something."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def start(command: list[str], folder: Path, work: str) -> tuple[int, str, str]:
    """Run a command to its end, and end what it started where it does not come to one."""
    with subprocess.Popen(
        command,
        cwd=work,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, out, err


def run_program(
    command: tuple[str, ...], folder: Path, cli: Path | None, run: Path, work: str
) -> Outcome:
    """Run a program in the folder ``work``; under ``cli``, ``run`` is what it leaves."""
    before = [sys.executable] if cli is None else [str(cli), "run", "-o", str(run)]
    try:
        code, out, err = start([*before, *command], folder, work)
    except OSError as error:
        return Outcome(error=f"it cannot be started: {error}")
    except subprocess.TimeoutExpired:
        return Outcome(error=f"it did not end within {LIMIT_S} s")
    if code:
        return Outcome(error=f"it ended with code {code}: {last_line(err)}")
    said = TRAINED.search(out)
    if said is None:
        return Outcome(error="it did not say how many steps it trained")
    report, problem = (None, None) if cli is None else read_report(run / "report.json")
    return Outcome(int(said[1]), float(said[2]), report, problem)


def execute(
    command: tuple[str, ...], folder: Path, cli: Path | None, keep: Path | None = None
) -> Outcome:
    """Run a program in an empty folder, under ``cli`` or, where that is None, alone.

    The run directory is ``keep``, in place of what is there, or is thrown away.
    """
    if keep and keep.exists():
        shutil.rmtree(keep)
    with tempfile.TemporaryDirectory(prefix="zoo-") as work:
        outcome = run_program(command, folder, cli, keep or Path(work, "recorded"), work)
    if keep and keep.is_dir():
        said = f"trained {outcome.steps} steps in {outcome.seconds} s"
        line = said if outcome.steps is not None else outcome.error
        (keep / SAID).write_text(f"{line}\n", encoding="utf-8")
    return outcome


def reopen(run: Path, cli: Path) -> Outcome:
    """Return what a kept run says when ``cli`` reports on it; its program is not run again."""
    if not run.is_dir():
        return Outcome(error="there is no recording of it")
    try:
        line = (run / SAID).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        line = ""
    said = TRAINED.search(line)
    if line and said is None:
        return Outcome(error=line)
    report, problem = make_report(run, cli)
    steps, seconds = (int(said[1]), float(said[2])) if said else (None, None)
    return Outcome(steps, seconds, report, problem)
