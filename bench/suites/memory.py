"""What counting and sampling allocations costs a training, beside memray and tracemalloc."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.suites.python_sampler import percent
from bench.suites.python_training import one

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
    return {tool: one(bench, python, "cnn", tool, rivals=True) for tool in TOOLS}


def tables(result: Result) -> list[Table]:
    """One row a tool."""
    rows, notes = [], []
    for tool, text in TOOLS.items():
        found = result.get(tool, {})
        if "slower" in found:
            rows.append((text, f"{found['step_us']:.0f}", percent(found["slower"])))
        else:
            notes.append(f"{text}: {found.get('absent') or result.get('why')}.")
    head = ("tool", "step, µs", "slow-down, %: median (95 % interval)")
    return [Table("Allocations of a training (CNN)", head, tuple(rows), tuple(notes))]


def verdicts(result: Result) -> list[Verdict]:
    """Slower by no more than promised."""
    made = []
    for tool, limit in PROMISED.items():
        found = result.get(tool, {})
        if "slower" not in found:
            why = found.get("absent") or result.get("why")
            made.append(Verdict(f"{TOOLS[tool]}: not measured, {why}", None, final=True))
            continue
        figure = found["slower"]
        said = f"{TOOLS[tool]}: {percent(figure)} %, {figure['pairs']} pairs; at most {limit} %"
        made.append(Verdict(said, figure["median"] <= limit))
    return made


SUITE = Suite("memory", measure, tables, verdicts)
