"""stepwatch report: text for every terminal, JSON for every reader, one sentence for bad input."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import unicodedata
from decimal import Decimal
from pathlib import Path
from typing import Any, Callable

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

TOP_LEVEL = {
    "schema", "run", "overhead", "timeline", "steps", "epochs", "loader", "sections",
    "functions", "lines", "modules", "memory", "monitor", "gpu", "findings", "notes",
    "bound", "checked",
}  # fmt: skip


def width(line: str) -> int:
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in line)
    return len(line) + wide - sum(unicodedata.combining(c) != 0 for c in line)


def load(stepwatch: Run, path: Path) -> dict[str, Any]:
    result = stepwatch("report", path, "--json")
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout, parse_float=Decimal)
    return document


def test_json_has_every_part(stepwatch: Run, recorded: Path) -> None:
    report = load(stepwatch, recorded)
    assert set(report) >= TOP_LEVEL
    assert report["schema"] == "stepwatch.report/1"
    assert isinstance(report["findings"], list)
    assert len({check["kind"] for check in report["checked"]}) == len(report["checked"]) >= 29
    for part in ("loader", "functions", "lines", "modules", "gpu"):
        assert report[part]["recorded"] is False
        assert report[part]["why"]
    assert report["run"]["command"].endswith("steps 40")
    assert report["run"]["duration_s"] > 0


def test_json_adds_up(stepwatch: Run, recorded: Path) -> None:
    report = load(stepwatch, recorded)
    assert sum(part["s"] for part in report["timeline"]) == report["run"]["duration_s"]
    assert sum(float(part["share"]) for part in report["timeline"]) == 1
    steps = report["steps"]
    assert steps["count"] == 40
    assert steps["updates"] == 40
    phases = [phase for phase in steps["phases"] if phase["measured"]]
    assert sum(float(phase["share"]) for phase in phases) == 1
    total = sum(float(phase["ms"]) for phase in phases)
    assert total == pytest.approx(float(steps["step_ms"]["mean"]), rel=1e-9)
    for phase in steps["phases"]:
        assert (phase["ms"] is None) == (not phase["measured"])
    assert {phase["phase"] for phase in phases} == {"data_wait", "forward", "backward", "other"}
    assert steps["worst"][0]["step"] == 7
    assert steps["worst"][0]["phase"] == "data_wait"
    assert [epoch["epoch"] for epoch in report["epochs"]] == [0, 1, 2, 3]
    assert [epoch["steps"] for epoch in report["epochs"]] == [10] * 4


def test_json_sections(stepwatch: Run, recorded: Path) -> None:
    report = load(stepwatch, recorded)
    rows = {tuple(row["path"]): row for row in report["sections"]}
    assert set(rows) == {("data",), ("forward",), ("forward", "layer"), ("backward",)}
    forward, layer = rows["forward",], rows["forward", "layer"]
    assert forward["calls"] == layer["calls"] == 40
    assert forward["total_ms"] == forward["self_ms"] + layer["total_ms"]
    for row in rows.values():
        assert row["min_ms"] <= row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"] <= row["max_ms"]
    overhead = report["overhead"]
    assert overhead["events"] == 5 * 40
    assert overhead["dropped"] == overhead["overwritten"] == 0
    assert overhead["low"] <= overhead["percent"] <= overhead["high"]
    (counter,) = report["counters"]
    assert counter["name"] == "loss"
    assert counter["count"] == 40
    assert counter["max"] == 1
    assert counter["last"] == counter["min"] == Decimal("0.025")


@pytest.mark.parametrize("columns", [60, 80, 100, 137, 200])
@pytest.mark.parametrize("look", ["--ascii", "--unicode"])
def test_no_line_is_too_wide(stepwatch: Run, recorded: Path, columns: int, look: str) -> None:
    result = stepwatch("report", recorded, look, f"--width={columns}", "--top=20")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert max(map(width, lines)) <= columns
    assert all(line == line.rstrip() for line in lines)
    assert result.stdout.isascii() == (look == "--ascii")
    for word in ("Steps", "Sections", "forward", "layer", "loss", "Recording"):
        assert word in result.stdout


@pytest.mark.parametrize("name", ["a" * 300, "層" * 100, "x\x1b[31m\n\ty", "é" * 100, "   "])
def test_names_are_harmless(stepwatch: Run, program: Path, tmp_path: Path, name: str) -> None:
    result = stepwatch("run", "-o", "out", "--name", name, "--", program, "names", name)
    assert result.returncode == 0
    for look in ("--ascii", "--unicode"):
        result = stepwatch("report", "out", look, "--width", "60")
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", result.stdout)
        assert max(map(width, result.stdout.splitlines())) <= 60
    (row,) = load(stepwatch, tmp_path / "out")["sections"]
    assert row["path"] == [row["name"]]
    assert name.startswith(row["name"])


def test_families_are_folded_in_text_only(stepwatch: Run, program: Path, tmp_path: Path) -> None:
    stepwatch("run", "-o", "out", "--", program, "families", "12")
    text = stepwatch("report", "out", "--ascii", "--top=20").stdout
    assert text.count("family_*") == 2
    assert "family_3" not in text
    rows = load(stepwatch, tmp_path / "out")["sections"]
    assert sum(row["name"] == "member" for row in rows) == 12
    assert {row["name"] for row in rows if len(row["path"]) == 1} == {
        f"family_{i}" for i in range(12)
    }


def test_locale_chooses_the_characters(stepwatch: Run, recorded: Path) -> None:
    assert not stepwatch("report", recorded).stdout.isascii()
    assert stepwatch("report", recorded, extra={"LC_ALL": "C"}).stdout.isascii()


def test_columns_of_the_environment(stepwatch: Run, recorded: Path) -> None:
    result = stepwatch("report", recorded, extra={"COLUMNS": "66"})
    assert max(map(width, result.stdout.splitlines())) <= 66


def on_terminal(command: list[str], env: dict[str, str]) -> bytes:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(command[0], command, env)
    output = b""
    while True:
        select.select([terminal], [], [])
        try:
            data = os.read(terminal, 65536)
        except OSError:
            break
        if not data:
            break
        output += data
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return output


def test_colour(stepwatch_cli: Path, stepwatch: Run, recorded: Path, env: dict[str, str]) -> None:
    command = [str(stepwatch_cli), "report", str(recorded)]
    assert b"\x1b[" in on_terminal(command, {**env, "TERM": "xterm"})
    assert b"\x1b[" not in on_terminal(command, {**env, "TERM": "dumb"})
    assert b"\x1b[" not in on_terminal(command, {**env, "TERM": "xterm", "NO_COLOR": "1"})
    never = [*command, "--color=never"]
    assert b"\x1b[" not in on_terminal(never, {**env, "TERM": "xterm"})
    assert "\x1b[" not in stepwatch("report", recorded).stdout
    assert "\x1b[" in stepwatch("report", recorded, "--color=always").stdout


def test_colour_changes_nothing_but_colour(stepwatch: Run, recorded: Path) -> None:
    plain = stepwatch("report", recorded, "--color=never").stdout
    coloured = stepwatch("report", recorded, "--color=always").stdout
    assert re.sub(r"\x1b\[\d+m", "", coloured) == plain


def test_one_file(stepwatch: Run, recorded: Path) -> None:
    (file,) = recorded.glob("*.stepwatch")
    report = load(stepwatch, file)
    assert report["steps"]["count"] == 40
    assert report["run"]["exit"] == {"code": None, "signal": None}


def test_top(stepwatch: Run, program: Path) -> None:
    def shown(*options: str) -> int:
        text = stepwatch("report", "out", *options).stdout
        return sum(line.startswith("section ") for line in text.splitlines())

    names = [word for i in range(30) for word in ("names", f"section {chr(65 + i)}x")]
    stepwatch("run", "-o", "out", "--", program, *names)
    assert shown() == 20
    assert "10 more sections" in stepwatch("report", "out").stdout
    assert shown("--top", "5") == 5
    assert shown("--top=all") == 30


def test_a_reader_that_leaves(stepwatch_cli: Path, recorded: Path, env: dict[str, str]) -> None:
    for option in ("--json", "--ascii"):
        read, write = os.pipe()
        os.close(read)
        result = subprocess.run(
            [stepwatch_cli, "report", recorded, option],
            stdout=write,
            stderr=subprocess.PIPE,
            env=env,
            check=False,
        )
        os.close(write)
        assert result.returncode == 0
        assert result.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk(stepwatch_cli: Path, recorded: Path, env: dict[str, str]) -> None:
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run(
            [stepwatch_cli, "report", recorded],
            stdout=full,
            stderr=subprocess.PIPE,
            env=env,
            check=False,
        )
    assert result.returncode == 3
    assert len(result.stderr.splitlines()) == 1


def make_bad_input(kind: str, tmp_path: Path) -> Path:
    target = tmp_path / kind
    if kind == "missing":
        return target
    if kind == "empty file":
        target.write_bytes(b"")
    elif kind == "garbage":
        target.write_bytes(os.urandom(10000))
    elif kind == "text":
        target.write_text("just text\n" * 1000)
    elif kind == "empty folder":
        target.mkdir()
    elif kind == "foreign folder":
        target.mkdir()
        (target / "a.txt").write_text("x")
        (target / "run.json").write_text("{}")
    elif kind == "garbage in folder":
        target.mkdir()
        (target / "a.stepwatch").write_bytes(os.urandom(5000))
    return target


@pytest.mark.parametrize(
    "kind",
    [
        "missing",
        "empty file",
        "garbage",
        "text",
        "empty folder",
        "foreign folder",
        "garbage in folder",
    ],
)
def test_unreadable_input(stepwatch: Run, tmp_path: Path, kind: str) -> None:
    path = make_bad_input(kind, tmp_path)
    for options in ((), ("--json",)):
        result = stepwatch("report", path, *options)
        assert result.returncode == 3, result.stderr
        assert result.stdout == ""
        assert result.stderr.startswith("stepwatch: ")
        assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("kept", [20, 1000, 3000, 4096, 20000, 20480])
def test_a_file_that_was_cut(stepwatch: Run, recorded: Path, tmp_path: Path, kept: int) -> None:
    (file,) = recorded.glob("*.stepwatch")
    (tmp_path / "cut.stepwatch").write_bytes(file.read_bytes()[:kept])
    report = load(stepwatch, tmp_path / "cut.stepwatch")
    assert report["run"]["complete"] is False
    assert report["notes"]


def test_one_bad_file_among_good_ones(stepwatch: Run, recorded: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(recorded, mixed)
    (mixed / "zzz.stepwatch").write_bytes(b"nonsense" * 1000)
    report = load(stepwatch, mixed)
    assert report["steps"]["count"] == 40
    assert any("zzz" in note for note in report["notes"])
    assert report["run"]["complete"] is False


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"schema": "other/1"}', '{"a": 1e999}'])
def test_a_bad_run_json_is_a_note(
    stepwatch: Run, recorded: Path, tmp_path: Path, text: str
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(recorded, copy)
    (copy / "run.json").write_text(text)
    report = load(stepwatch, copy)
    assert report["run"]["exit"] == {"code": None, "signal": None}
    assert any("run.json" in note for note in report["notes"])
    assert sum(part["s"] for part in report["timeline"]) == report["run"]["duration_s"]
