"""Iterating over steps in Python."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.pythons import Promise, Rounds, limited

CASES = {
    "sections": "two sections",
    "steps": "`stepwatch.steps(it)`",
    "data": "`stepwatch.data(it)`",
    "steps_no_usage": "`stepwatch.steps(it)`, step_usage off",
}


def over_sections(rounds: Rounds) -> list[float]:
    """Return what an iteration costs more than the bare iterator and two sections."""
    return [steps - both for steps, both in zip(rounds["steps"], rounds["sections"])]


PROMISES = (
    Promise(
        "steps",
        "an iteration of stepwatch.steps, over the bare iterator and two sections",
        ("steps", "sections"),
        over_sections,
        limited(40.0),
        " ns",
    ),
)


def measure(bench: Bench) -> Result:
    """Run the script in three processes of each Python."""
    arguments = [str(bench.times(201, 51))]
    found = pythons.measure(bench, "steps", pythons.ALL, bench.times(3, 1), arguments)
    bases = dict.fromkeys(("steps_no_usage", "data_no_usage"), "bare_no_usage")
    return pythons.summarize(found, PROMISES, {**bases, "": "bare"})


def tables(result: Result) -> list[Table]:
    """What an iteration costs more than a bare one."""
    return [
        Table(
            "Steps in Python, ns an iteration over the bare iterator: median (p10 … p90)",
            pythons.head(result, "Python"),
            pythons.table_rows(result, CASES),
            pythons.notes(result),
        ),
        Table(
            "What is promised of them",
            ("", *pythons.ALL, "at most"),
            pythons.promised_rows(result, PROMISES, pythons.ALL),
        ),
    ]


def verdicts(result: Result) -> list[Verdict]:
    """Little more than the two sections that a step consists of."""
    return pythons.verdicts(result, PROMISES)


SUITE = Suite("python_steps", measure, tables, verdicts)
