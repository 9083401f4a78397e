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


def read_report(path: Path) -> tuple[dict[str, Any] | None, str | None]:
    """Read a report: the report, or what is wrong with it."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None, "it left no report.json"
    except (OSError, ValueError) as error:
        return None, f"its report.json cannot be read: {error}"
    if not isinstance(report, dict) or report.get("schema") != "stepwatch.report/1":
        return None, "its report.json is none of schema stepwatch.report/1"
    return report, None


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


def execute(
    command: tuple[str, ...], folder: Path, cli: Path | None, keep: Path | None = None
) -> Outcome:
    """Run a program in an empty folder, under ``cli`` or, where that is None, alone.

    The run directory is ``keep``, in place of what is there, or is thrown away.
    """
    with tempfile.TemporaryDirectory(prefix="zoo-") as work:
        run = keep or Path(work, "recorded")
        if keep and keep.exists():
            shutil.rmtree(keep)
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
