"""Steps that were watched in brief: what tables, reports and exports say of them."""

from __future__ import annotations

import csv
import json
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import stepwatch
from stepwatch import Run

from .test_format_spec import PAGE, STEPS

STEP, BRIEF = 4, 0x0800
PHASE_TICKS = 96
OTHER, DATA_WAIT, FORWARD = 0, 1, 6
ALWAYS = {
    "data_wait", "h2d", "sync", "logging", "gc", "compile", "validation", "checkpoint",
}  # fmt: skip
PHASES = ALWAYS | {
    "preprocess", "augment", "collate", "forward", "loss", "backward", "optimizer", "zero_grad",
    "communication", "other",
}  # fmt: skip
COUNT, FROM = 40, 20


def watch_in_brief(path: Path) -> None:
    """Make the later steps of a recording ones that were watched in brief."""
    data = bytearray(path.read_bytes())
    at = PAGE
    while at + 128 <= len(data):
        magic, kind, _, size, used = struct.unpack_from("<IHHII", data, at)
        if magic != 0x4B4C4253 or kind == 0 or size < PAGE:
            at += PAGE
            continue
        place, end = at + 128, at + 128 + used
        while kind == STEPS and place + 32 <= end:
            number, units, flags = struct.unpack_from("<BBH", data, place)
            (step,) = struct.unpack_from("<Q", data, place + 24)
            if number == STEP and step >= FROM:
                ticks = list(struct.unpack_from("<20Q", data, place + PHASE_TICKS))
                ticks[OTHER] += ticks[FORWARD]
                ticks[FORWARD] = 0
                struct.pack_into("<20Q", data, place + PHASE_TICKS, *ticks)
                struct.pack_into("<H", data, place + 2, flags | BRIEF)
            place += units * 32
        at += size
    path.write_bytes(data)


@pytest.fixture
def brief(tmp_path: Path, no_recording: None) -> Run:  # noqa: ARG001
    folder = tmp_path / "run"
    stepwatch.start(out=folder, policy="stream", quiet=True, name="brief")
    for _ in range(COUNT):
        stepwatch.step_begin()
        with stepwatch.section("data_wait"):
            time.sleep(0.0005)
        with stepwatch.section("forward"):
            time.sleep(0.002)
        stepwatch.step_end()
    assert stepwatch.stop() is not None
    (path,) = folder.glob("*.stepwatch")
    watch_in_brief(path)
    return stepwatch.open(folder)


def export(command: Path, run: Run, *arguments: str) -> str:
    done = subprocess.run(
        [command, *arguments[:1], str(run.path), *arguments[1:]],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_rows(brief: Run) -> None:
    rows = brief.steps.to_list()
    assert [row["brief"] for row in rows] == [number >= FROM for number in range(COUNT)]
    for row in rows:
        assert row["data_wait_ns"] > 0
        if row["brief"]:
            known = {name[:-3] for name, value in row.items() if name[:-3] in ALWAYS and value}
            assert known == {"data_wait"}
            assert row["forward_ns"] is None
        else:
            assert row["forward_ns"] > 0
        parts = [value for name, value in row.items() if name[:-3] in PHASES]
        assert sum(value or 0 for value in parts) == row["duration_ns"]


def test_arrow(brief: Run) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table(brief.steps)
    assert table.schema.field("brief").type == pyarrow.bool_()
    assert table["forward_ns"].null_count == COUNT - FROM
    assert table["brief"].to_pylist() == [number >= FROM for number in range(COUNT)]


def test_report(brief: Run) -> None:
    steps: dict[str, Any] = brief.report().steps
    rows = brief.steps.to_list()[steps["warmup"] :]
    looked = [row for row in rows if not row["brief"]]
    assert steps["counted"] == len(rows)
    assert steps["looked"] == len(looked)
    phases = {phase["phase"]: phase for phase in steps["phases"]}
    assert sum(phase["share"] or 0 for phase in phases.values()) == pytest.approx(1, abs=1e-9)
    total = sum(row["duration_ns"] for row in rows)
    waits = sum(row["data_wait_ns"] for row in rows)
    assert phases["data_wait"]["ms"] == pytest.approx(waits / len(rows) / 1e6)
    forward = sum(row["forward_ns"] for row in looked)
    other = sum(row["other_ns"] for row in looked)
    expected = (total - waits) * forward / (forward + other)
    assert phases["forward"]["ms"] == pytest.approx(expected / len(rows) / 1e6, rel=1e-6)


def test_what_is_written(brief: Run, stepwatch_cli: Path, tmp_path: Path) -> None:
    text = export(stepwatch_cli, brief, "report", "--csv", str(tmp_path / "tables"))
    assert "steps that were looked at in full; the others were" in " ".join(text.split())
    with (tmp_path / "tables" / "steps.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["brief"] for row in rows] == ["false"] * FROM + ["true"] * (COUNT - FROM)
    assert all((row["forward_ns"] == "") == (row["brief"] == "true") for row in rows)
    trace = json.loads(export(stepwatch_cli, brief, "export", "--to", "chrome", "-o", "-"))
    marks = {
        event["name"]: event["args"].get("watched")
        for event in trace["traceEvents"]
        if event["name"].startswith("ProfilerStep#") and "args" in event
    }
    assert len(marks) == COUNT
    assert marks["ProfilerStep#0"] is None
    assert marks[f"ProfilerStep#{COUNT - 1}"] == "in brief"


def test_compare(brief: Run) -> None:
    same = stepwatch.compare(brief, brief)
    parts = {part["phase"]: part for part in same.runs[0]["phases"]}
    looked = [row["forward_ns"] for row in brief.steps if not row["brief"]]
    assert parts["forward"]["before_ms"] == pytest.approx(sum(looked) / len(looked) / 1e6, rel=0.2)
