"""One section, counter, mark and step beside a pair of clock reads."""

from __future__ import annotations

from typing import Any

from bench.harness import Bench, Result, Suite, Table, Verdict, at_most, number, ratios, spread

TIERS = {
    "events": "events and statistics",
    "stats": "statistics only",
    "off": "recording not started",
}
CASES = {
    "empty": "empty loop",
    "clock_pair": "pair of clock reads",
    "section": "section (handle)",
    "macro": "section (SW_SECTION)",
    "nested": "one of two nested",
    "eight": "one of eight in turn",
    "recursion": "one of sixteen deep",
    "switched_off": "section of a domain that is off",
    "counter": "counter",
    "mark": "mark",
    "step": "step",
}


def measure(bench: Bench) -> Result:
    """Run every tier in processes of its own, in turn, and join their rounds."""
    rounds: dict[str, dict[str, list[float]]] = {tier: {} for tier in TIERS}
    for _ in range(bench.times(7, 2)):
        for tier in TIERS:
            with bench.scratch() as scratch:
                program = bench.program("section")
                printed = bench.run_json([program, tier, scratch / "run", str(bench.times(21, 7))])
            for case, figures in printed["rounds"].items():
                rounds[tier].setdefault(case, []).extend(figures)
    return {"tiers": {tier: summarize(cases) for tier, cases in rounds.items()}}


def summarize(cases: dict[str, list[float]]) -> dict[str, Any]:
    """Set the rounds of one tier against those of the yardstick and of the empty loop."""
    return {
        "ns": {case: spread(figures) for case, figures in cases.items()},
        "clock_pairs": {
            case: ratios(figures, cases["clock_pair"]) for case, figures in cases.items()
        },
        "over_empty_ns": {
            case: spread([figure - empty for figure, empty in zip(figures, cases["empty"])])
            for case, figures in cases.items()
        },
    }


def tables(result: Result) -> list[Table]:
    """One table a tier."""
    made = []
    for tier, title in TIERS.items():
        figures = result["tiers"][tier]
        rows = []
        for case, name in CASES.items():
            ns = figures["ns"][case]
            rows.append(
                (
                    name,
                    number(ns["median"]),
                    number(ns["min"]),
                    number(ns["p10"]),
                    number(ns["p90"]),
                    number(figures["clock_pairs"][case]["median"]),
                )
            )
        head = ("ns each", "median", "min", "p10", "p90", "clock pairs")
        made.append(Table(f"Cost in C, {title}", head, tuple(rows)))
    return made


def verdicts(result: Result) -> list[Verdict]:
    """A section is little more than two clock reads; one that is off is nothing."""
    tiers = result["tiers"]
    section = tiers["events"]["clock_pairs"]["section"]
    return [
        at_most(
            "one section, events and statistics, in pairs of clock reads "
            f"(p10 {number(section['p10'])}, p90 {number(section['p90'])})",
            section["median"],
            1.6,
        ),
        at_most(
            "section before sw_init, over an empty loop",
            tiers["off"]["over_empty_ns"]["section"]["median"],
            1.0,
            " ns",
        ),
        at_most(
            "section of a domain that is off, over an empty loop",
            tiers["events"]["over_empty_ns"]["switched_off"]["median"],
            1.0,
            " ns",
        ),
    ]


SUITE = Suite("cost", measure, tables, verdicts)
