"""Beside LTTng-UST, and beside two clock_gettime and a line of JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from bench import lttng
from bench.harness import (
    ROOT,
    Bench,
    Result,
    Suite,
    Table,
    Verdict,
    at_least,
    number,
    ratios,
    say,
    spread,
)

CASES = {
    "clock_pair": "pair of clock reads",
    "stepwatch": "stepwatch section",
    "lttng": "LTTng-UST, begin and end",
    "fprintf": "clock_gettime twice, fprintf of a Chrome trace line",
    "fprintf_short": "the same, {name, ns} only",
}
LIMITS = {"lttng": 3.0, "fprintf": 10.0}


def measure(bench: Bench) -> Result:
    """Run the program under LTTng where that is possible, else without it."""
    rounds: dict[str, list[float]] = {}
    why_no_lttng = ""
    for _ in range(bench.times(5, 1)):
        printed, why_no_lttng = run_once(bench)
        for case, figures in printed["rounds"].items():
            rounds.setdefault(case, []).extend(figures)
    return {
        "ns": {case: spread(figures) for case, figures in rounds.items()},
        "times_ours": {
            case: ratios(figures, rounds["stepwatch"])
            for case, figures in rounds.items()
            if len(figures) == len(rounds["stepwatch"])
        },
        "why_no_lttng": why_no_lttng,
    }


def run_once(bench: Bench) -> tuple[dict[str, Any], str]:
    """Return what the program printed, and why LTTng is not in it."""
    # The rival's file is given to it in memory: no disk shall slow it down.
    with bench.scratch(memory=True) as memory, bench.scratch() as scratch:
        program = [str(bench.program("rival")), str(scratch / "run"), str(memory / "rival.json")]
        program.append(str(bench.times(21, 7)))
        wrapper = [sys.executable, str(ROOT / "bench" / "lttng.py")]
        home = str(scratch / "lttng")
        codes = (0, lttng.UNAVAILABLE)
        finished = bench.run([*wrapper, home, "stepwatch_bench:*", *program], codes=codes)
        if finished.code == lttng.UNAVAILABLE:
            why = finished.stderr.strip().splitlines()[-1]
            say(f"rivals: LTTng-UST is skipped: {why}")
            return bench.run_json(program), why
        printed: dict[str, Any] = json.loads(finished.stdout)
        return printed, "" if printed["lttng"] == "on" else printed["lttng"]


def tables(result: Result) -> list[Table]:
    """All of them in one table."""
    rows = []
    for case, name in CASES.items():
        if case not in result["ns"]:
            continue
        ns = result["ns"][case]
        cells = [number(ns[key]) for key in ("median", "min", "p10", "p90")]
        rows.append((name, *cells, number(result["times_ours"][case]["median"])))
    head = ("ns a section", "median", "min", "p10", "p90", "stepwatch sections")
    why = result["why_no_lttng"]
    notes = (f"LTTng-UST was skipped: {why}.",) if why else ()
    return [Table("Beside others, same program, same loop", head, tuple(rows), notes)]


def verdicts(result: Result) -> list[Verdict]:
    """Three times cheaper than LTTng, ten times cheaper than fprintf."""
    made = []
    for case, limit in LIMITS.items():
        if case not in result["times_ours"]:
            made.append(Verdict(f"{CASES[case]}: {result['why_no_lttng']}", None))
            continue
        value = result["times_ours"][case]["median"]
        made.append(at_least(f"{CASES[case]}, in stepwatch sections", value, limit))
    return made


SUITE = Suite("rivals", measure, tables, verdicts)
