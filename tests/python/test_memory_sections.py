"""Memory of sections, as the report tells it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import stepwatch

MIB = 1 << 20


@pytest.mark.usefixtures("plain_memory", "no_recording")
def test_the_section_that_keeps_is_named(tmp_path: Path, stepwatch_cli: Path) -> None:
    """Not the one whose pages are new because the other one has its old ones."""
    kept = []
    stepwatch.start(out=tmp_path / "run", memory=True, quiet=True)
    for _ in range(40):
        with stepwatch.step():
            with stepwatch.section("keeps"):
                kept.append(bytearray(MIB))
            with stepwatch.section("gives"):
                bytearray(4 * MIB)
    stepwatch.stop()
    words = [str(stepwatch_cli), "report", str(tmp_path / "run")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "; keeps kept 40" in " ".join(done.stdout.split()), done.stdout


@pytest.mark.usefixtures("plain_memory", "no_recording")
def test_short_sections_are_counted_exactly_beside_readings(tmp_path: Path) -> None:
    """Some calls are read from the kernel, most are not; all of them are counted."""
    stepwatch.start(out=tmp_path / "run", memory=True, memory_sample_kb=0, quiet=True)
    for _ in range(20_000):
        with stepwatch.section("outer"):
            kept = bytearray(1000)
            with stepwatch.section("forward"):
                bytearray(2000)
            del kept
    run = stepwatch.stop()
    report = run.report().to_dict()
    calls = {tuple(row["path"]): row["calls"] for row in report["sections"]}
    assert calls[("outer",)] == calls[("outer", "forward")] == 20_000
    found = {tuple(row["path"]): row for row in report["memory"]["allocations"]["sections"]}
    inner, outer = found[("outer", "forward")], found[("outer",)]
    assert inner["calls"] == outer["calls"] == 20_000
    assert 20_000 * 2000 <= inner["allocated_bytes"] <= 20_000 * 2300
    assert 20_000 * 3000 <= outer["allocated_bytes"] <= 20_000 * 3600
    assert 3000 <= outer["peak_bytes"] <= 200_000  # once, what Python makes for itself
    read = {tuple(row["path"]): row["calls_read"] for row in report["memory"]["sections"]}
    assert 0 < read[("outer",)] <= 20_000
