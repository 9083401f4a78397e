"""What counting and sampling allocations costs a training, beside memray and tracemalloc."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.suites.python_training import limit_verdict, one, tools_table

TOOLS = {
    "nothing": "nothing at all: what the machine differs by",
    "memory": "stepwatch.memory(): counters and a stack every 512 KiB",
    "counters": "stepwatch.memory(sample_kb=0): counters only",
    "memory-run": "stepwatch, recording with memory=True",
    "tracemalloc": "tracemalloc",
    "memray": "memray",
}
# At most so many percent.
PROMISED = {"memory": 3.0, "counters": 1.0}


def measure(bench: Bench) -> Result:
    """Run the CNN with every tool, on and off in turn."""
    python = pythons.find("3.11")
    if python is None:
        return {"why": "there is no Python 3.11"}
    return {tool: one(bench, python, "cnn", tool, rivals=True, steps=400) for tool in TOOLS}


def tables(result: Result) -> list[Table]:
    """One row a tool."""
    return tools_table(result, TOOLS, "Allocations of a training (CNN)", "tool")


def verdicts(result: Result) -> list[Verdict]:
    """Slower by no more than promised."""
    return [limit_verdict(result, tool, TOOLS[tool], most) for tool, most in PROMISED.items()]


SUITE = Suite("memory", measure, tables, verdicts)
