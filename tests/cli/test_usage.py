"""Help, version, and what happens to those who mistype."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
COMMANDS = ("run", "report", "compare", "export", "doctor")


def test_version(stepwatch: Run) -> None:
    result = stepwatch("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("stepwatch 0.")
    assert result.stderr == ""


@pytest.mark.parametrize("words", [("--help",), ("-h",), ("help",)])
def test_help_names_every_command(stepwatch: Run, words: tuple[str, ...]) -> None:
    result = stepwatch(*words)
    assert result.returncode == 0
    assert all(command in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(stepwatch: Run, command: str) -> None:
    one = stepwatch(command, "--help")
    other = stepwatch("help", command)
    assert one.returncode == other.returncode == 0
    assert one.stdout == other.stdout
    assert f"stepwatch {command}" in one.stdout
    assert max(map(len, one.stdout.splitlines())) <= 80


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("run", "--help")])
def test_no_room_for_the_answer(stepwatch: Run, words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        result = stepwatch(*words, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert result.returncode == 3
    assert result.stderr.count("\n") == 1
    assert "No space left" in result.stderr


def test_without_a_command(stepwatch: Run) -> None:
    result = stepwatch()
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Usage" in result.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("rport",), "report"),
        (("rnu", "--", "true"), "run"),
        (("docter",), "doctor"),
        (("--versoin",), "--version"),
        (("report", "x", "--jsno"), "--json"),
        (("report", "x", "--widht=80"), "--width"),
        (("report", "x", "--col=never"), "--color"),
        (("run", "--no-rport", "--", "true"), "--no-report"),
        (("run", "--set", "max_bm=3", "--", "true"), "max_mb"),
        (("doctor", "--jsn"), "--json"),
        (("expor",), "export"),
        (("export", "x", "--two", "json"), "--to"),
        (("help", "reports"), "report"),
    ],
)
def test_mistyped_words_name_the_nearest(
    stepwatch: Run, words: tuple[str, ...], expected: str
) -> None:
    result = stepwatch(*words)
    assert result.returncode == 2
    assert result.stdout == ""
    assert f"'{expected}'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        ("frobnicate",),
        ("--frobnicate",),
        ("report",),
        ("report", "a", "b"),
        ("report", "a", "--top"),
        ("report", "a", "--top", "0"),
        ("report", "a", "--top", "-3"),
        ("report", "a", "--top=many"),
        ("report", "a", "--width", "59"),
        ("report", "a", "--width", "201"),
        ("report", "a", "--color", "sometimes"),
        ("report", "a", "--json=yes"),
        ("report", "a", "-x"),
        ("export",),
        ("export", "a"),
        ("export", "--to", "json"),
        ("export", "a", "--to"),
        ("export", "a", "b", "--to", "json"),
        ("export", "a", "--to", "pprof"),
        ("export", "a", "--to", ""),
        ("export", "a", "--to", "json", "--waiting"),
        ("export", "a", "--to", "json", "--lines"),
        ("export", "a", "--to", "speedscope", "--threads"),
        ("run",),
        ("run", "--"),
        ("run", "-o"),
        ("run", "--set", "max_mb", "--", "true"),
        ("run", "--set", "max_mb=much", "--", "true"),
        ("doctor", "operand"),
    ],
)
def test_wrong_usage_is_one_sentence(stepwatch: Run, words: tuple[str, ...]) -> None:
    result = stepwatch(*words)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("stepwatch: ")
    assert len(result.stderr.splitlines()) == 1


def test_a_closed_pipe_is_no_error(stepwatch: Run) -> None:
    result = stepwatch("doctor", "--json", stdout=subprocess.DEVNULL, capture_output=False)
    assert result.returncode == 0
