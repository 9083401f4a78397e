"""What the tests of the line profiler share: reading a profile, and programs of their own."""

from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import stepwatch

if TYPE_CHECKING:
    from collections.abc import Callable


NAP = 0.05
NAP_NS = int(NAP * 1e9)


def hits(profile: stepwatch.Lines, function: Callable[..., Any]) -> dict[int, int]:
    """Return hits by line, counted from the `def`."""
    code = inspect.unwrap(function).__code__
    start = code.co_firstlineno
    return {
        row["line"] - start: row["hits"]
        for row in profile.rows()
        if row["hits"]
        and row["file"] == code.co_filename
        and row["function"].endswith(code.co_name)
    }


def times(profile: stepwatch.Lines, function: Callable[..., Any]) -> dict[int, int]:
    """Return nanoseconds by line, counted from the `def`."""
    code = inspect.unwrap(function).__code__
    return {row["line"] - code.co_firstlineno: row["time_ns"] for row in profile.rows()}


def plain(count: int, *, scale: float = 2.0) -> float:
    total = 0.0
    for _ in range(count):
        total += scale
    return total


def run_python(code: str, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *args],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


def nap() -> int:
    time.sleep(NAP)
    return 1
