"""What following the guides costs: one step in a hundred is profiled, into a file of its own."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.suites.python_training import limit_verdict, one, tools_table

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
    return tools_table(result, TOOLS, "Following a guide", "one step in a hundred with")


def verdicts(result: Result) -> list[Verdict]:
    """Slower by no more than promised."""
    return [limit_verdict(result, "every-ours", "one step in a hundred", PROMISED)]


SUITE = Suite("guides", measure, tables, verdicts)
