"""What following the guides costs: one step in a hundred is profiled, into a file of its own."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.suites.python_sampler import percent
from bench.suites.python_training import one

TOOLS = {
    "nothing": "nothing at all: what the machine differs by",
    "every-ours": "stepwatch.compat.ml_ops: torch_profiler",
    "every-torch": "torch.profiler, export_chrome_trace",
}
# At most so many percent.
PROMISED = 0.1


def measure(bench: Bench) -> Result:
    """Run the CNN with every tool, on and off in turn."""
    python = pythons.find("3.11")
    if python is None:
        return {"why": "there is no Python 3.11"}
    return {tool: one(bench, python, "cnn-every", tool) for tool in TOOLS}


def tables(result: Result) -> list[Table]:
    """One row a tool."""
    rows, notes = [], []
    for tool, text in TOOLS.items():
        found = result.get(tool, {})
        if "slower" in found:
            rows.append((text, f"{found['step_us']:.0f}", percent(found["slower"])))
        else:
            notes.append(f"{text}: {found.get('absent') or result.get('why')}.")
    head = ("one step in a hundred with", "step, µs", "slow-down, %: median (95 % interval)")
    return [Table("Following a guide", head, tuple(rows), tuple(notes))]


def verdicts(result: Result) -> list[Verdict]:
    """Slower by no more than promised."""
    found = result.get("every-ours", {})
    if "slower" not in found:
        why = found.get("absent") or result.get("why")
        return [Verdict(f"one step in a hundred: not measured, {why}", None, final=True)]
    figure = found["slower"]
    said = f"one step in a hundred: {percent(figure)} %, {figure['pairs']} pairs"
    return [Verdict(f"{said}; at most {PROMISED} %", figure["median"] <= PROMISED)]


SUITE = Suite("guides", measure, tables, verdicts)
