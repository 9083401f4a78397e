"""stepwatch stats: function profiles of files and runs."""

from __future__ import annotations

import cProfile
import json
import marshal
import subprocess
from pathlib import Path
from typing import Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Return a file that cProfile wrote."""
    profile = cProfile.Profile()
    profile.runcall(fib, 10)
    path = tmp_path / "fib.prof"
    profile.dump_stats(path)
    return path


def test_text(stepwatch: Run, saved: Path) -> None:
    result = stepwatch("stats", saved, "--sort", "calls", "--top", "1")
    assert (result.returncode, result.stderr) == (0, "")
    assert " function calls (" in result.stdout
    assert "Ordered by: call count" in result.stdout
    assert result.stdout.rstrip().endswith("(fib)")
    assert "   177/1 " in result.stdout


def test_json(stepwatch: Run, saved: Path) -> None:
    result = stepwatch("stats", saved, "--json")
    document = json.loads(result.stdout)
    assert document["schema"] == "stepwatch.functions/1"
    row = next(row for row in document["functions"] if row["name"] == "fib")
    assert (row["calls"], row["primitive_calls"], row["errors"]) == (177, 1, None)
    [caller] = row["callers"]
    assert (caller["name"], caller["calls"]) == ("fib", 176)


def test_narrow_page(stepwatch: Run, saved: Path) -> None:
    result = stepwatch("stats", saved, "--width", "80")
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "which file?"),
        (["a", "b"], "one file at a time"),
        (["a", "--sort", "size"], "--sort takes cumulative"),
        (["a", "--top", "0"], "--top takes a number"),
        (["a", "--width", "x"], "--width takes a number"),
    ],
)
def test_wrong_usage(stepwatch: Run, arguments: list[str], complaint: str) -> None:
    result = stepwatch("stats", *arguments)
    assert (result.returncode, result.stdout) == (2, "")
    assert complaint in result.stderr


def test_unreadable(stepwatch: Run, tmp_path: Path, recorded: Path) -> None:
    (tmp_path / "text").write_text("   10 function calls in 0.1 seconds\n")
    (tmp_path / "list").write_bytes(marshal.dumps([1]))
    (tmp_path / "other").write_bytes(marshal.dumps({1: 2}))
    for name in ("missing", "text", "list", "other", str(tmp_path / "missing.stepwatch")):
        result = stepwatch("stats", name)
        assert (result.returncode, result.stdout) == (3, "")
        assert result.stderr.count("\n") == 1
    result = stepwatch("stats", recorded)
    assert result.returncode == 3
    assert "has no function profile" in result.stderr
