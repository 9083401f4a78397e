"""Instructions of one operation, counted by callgrind: the figure that no noise touches."""

from __future__ import annotations

import json
import platform
import shutil
from pathlib import Path
from typing import Any

from bench.harness import ROOT, Bench, BenchError, Result, Suite, Table, Verdict, number, say

BASELINE = ROOT / "bench" / "baselines" / "instructions.json"
GROWTH = 1.05
# Start-up and warm-up are the same in both runs and fall out of their difference.
FEW, MANY = 4_000, 24_000
OPERATIONS = {"section": 1, "nested": 2, "eight": 8, "counter": 1}
CASES = (
    ("events", "section"),
    ("events", "nested"),
    ("events", "eight"),
    ("events", "counter"),
    ("stats", "section"),
    ("off", "section"),
)


def count(bench: Bench, tier: str, thing: str, n: int) -> int:
    """Return the instructions that ``n`` rounds of ``thing`` take on the calling thread."""
    with bench.scratch() as scratch:
        out = scratch / "callgrind.out"
        # valgrind's processor has a time stamp counter but does not call it invariant.
        clock = {"STEPWATCH_CLOCK": "tsc"} if platform.machine() == "x86_64" else {}
        tool = ["valgrind", "--tool=callgrind", "--toggle-collect=counted"]
        tool.append(f"--callgrind-out-file={out}")
        program = bench.program("instructions")
        bench.run([*tool, program, tier, thing, scratch / "run", str(n)], clock)
        return totals(out)


def totals(path: Path) -> int:
    """Return the sum of a callgrind file."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(("totals:", "summary:")):
            return int(line.split()[1])
    raise BenchError(f"{path} has no totals")


def each(bench: Bench, tier: str, thing: str) -> float:
    """Return the instructions of one round of ``thing``."""
    return (count(bench, tier, thing, MANY) - count(bench, tier, thing, FEW)) / (MANY - FEW)


def measure(bench: Bench) -> Result:
    """Count every case, less what the loop around it takes."""
    if not shutil.which("valgrind"):
        return {"skipped": "valgrind is not installed"}
    empty = each(bench, "off", "empty")
    counts = {
        f"{tier} {thing}": round((each(bench, tier, thing) - empty) / OPERATIONS[thing], 2)
        for tier, thing in CASES
    }
    made_by = {"compiler": bench.compiler(), "arch": platform.machine()}
    if bench.refresh_instructions:
        save_baseline({**made_by, "counts": counts})
    return {**made_by, "counts": counts, "baseline": load_baseline()}


def load_baseline() -> dict[str, Any] | None:
    """Return the recorded counts, or None."""
    if not BASELINE.exists():
        return None
    baseline: dict[str, Any] = json.loads(BASELINE.read_text(encoding="utf-8"))
    return baseline


def save_baseline(baseline: dict[str, Any]) -> None:
    """Record new counts."""
    BASELINE.parent.mkdir(exist_ok=True)
    BASELINE.write_text(json.dumps(baseline, indent=2) + "\n", encoding="utf-8")
    say(f"instructions: {BASELINE.relative_to(ROOT)} was refreshed")


def comparable(result: Result) -> str | None:
    """Say why the counts cannot be compared with the recorded ones, or None."""
    baseline = result["baseline"]
    if baseline is None:
        return "no counts are recorded; --refresh-instructions does that"
    for key in ("arch", "compiler"):
        if baseline[key] != result[key]:
            return f"recorded for {baseline[key]}, this is {result[key]}"
    return None


def tables(result: Result) -> list[Table]:
    """Counts beside the recorded ones."""
    head = ("instructions each", "now", "recorded")
    if "skipped" in result:
        return [Table("Instructions", head, (), (f"Skipped: {result['skipped']}.",))]
    recorded = (result["baseline"] or {"counts": {}})["counts"]
    rows = tuple(
        (name, number(value), number(recorded[name]) if name in recorded else "-")
        for name, value in result["counts"].items()
    )
    return [Table("Instructions, counted by callgrind", head, rows, (f"{result['compiler']}.",))]


def verdicts(result: Result) -> list[Verdict]:
    """No count grows by more than five percent unnoticed."""
    why = result.get("skipped") or comparable(result)
    if why:
        return [Verdict(f"instruction counts: {why}", None)]
    recorded = result["baseline"]["counts"]
    made = []
    for name, value in result["counts"].items():
        if name not in recorded:
            made.append(Verdict(f"instructions, {name}: not recorded yet", None))
            continue
        limit = recorded[name] * GROWTH + 0.5
        text = f"instructions, {name}: {value}, recorded {recorded[name]}, at most {limit:.1f}"
        made.append(Verdict(text, value <= limit))
    return made


SUITE = Suite("instructions", measure, tables, verdicts, counts=True)
