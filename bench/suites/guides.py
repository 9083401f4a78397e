"""What following the guides costs: one step in a hundred is profiled, into a file of its own."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.suites.python_sampler import percent
from bench.suites.python_training import limit_verdict, one

TOOLS = {
    "nothing": "nothing at all: what the machine differs by",
    "every-ours": "stepwatch.compat.ml_ops: torch_profiler",
    "every-torch": "torch.profiler, export_chrome_trace",
}
# The first is the one that the promise is about.
PROGRAMS = {
    "ocr": "guide 4's own training",
    "cnn-every": "a CNN with short steps",
}
# At most so many percent.
PROMISED = 0.1


def measure(bench: Bench) -> Result:
    """Run both programs with every tool, on and off in turn."""
    python = pythons.find("3.11")
    if python is None:
        return {"why": "there is no Python 3.11"}
    return {
        program: {tool: one(bench, python, program, tool) for tool in TOOLS} for program in PROGRAMS
    }


def tables(result: Result) -> list[Table]:
    """One row a program and tool."""
    rows, notes = [], []
    for program, name in PROGRAMS.items():
        for tool, text in TOOLS.items():
            found = result.get(program, {}).get(tool, {})
            if "slower" in found:
                rows.append((name, text, f"{found['step_us']:.0f}", percent(found["slower"])))
            else:
                notes.append(f"{name}, {text}: {found.get('absent') or result.get('why')}.")
    head = ("program", "one step in a hundred with", "step, µs")
    head = (*head, "slow-down, %: median (95 % interval)")
    return [Table("Following a guide", head, tuple(rows), tuple(notes))]


def verdicts(result: Result) -> list[Verdict]:
    """Guide 4's own training is slower by no more than promised."""
    found = {"why": result.get("why"), **result.get("ocr", {})}
    text = "guide 4's own training, one step in a hundred"
    return [limit_verdict(found, "every-ours", text, PROMISED)]


SUITE = Suite("guides", measure, tables, verdicts)
