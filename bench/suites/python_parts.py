"""Which part of watching a training costs what: the CNN with some of it."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.suites.python_training import one, tools_table

TOOLS = {
    "nothing": "nothing at all: what the machine differs by",
    "thread": "a second thread that sleeps",
    "bare": "a recording without phases, modules and loader: threads and files alone",
    "phases": "phases",
    "modules": "phases and modules",
    "loader": "phases and loader",
    "statistics": "all three, without single events and samples",
    "no-usage": "the same, step_usage off",
}


def measure(bench: Bench) -> Result:
    """Run the CNN with every part, on and off in turn."""
    python = pythons.find("3.11")
    if python is None:
        return {"why": "there is no Python 3.11"}
    pairs = bench.times(60, 4)
    return {tool: one(bench, python, "cnn", tool, steps=50, pairs=pairs) for tool in TOOLS}


def tables(result: Result) -> list[Table]:
    """One row a part."""
    return tools_table(result, TOOLS, "Parts of watching a training (CNN)", "recorded")


def verdicts(_: Result) -> list[Verdict]:
    """Nothing is promised of parts: python_training has the limits of the whole."""
    return []


SUITE = Suite("python_parts", measure, tables, verdicts)
