"""What following the guides costs: one step in a hundred is profiled, into a file of its own."""

from __future__ import annotations

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.suites.python_sampler import interval, percent
from bench.suites.python_training import one

TOOLS = {
    "nothing": "nothing at all: what the machine differs by",
    "every-ours": "stepwatch.compat.ml_ops: torch_profiler",
    "every-torch": "torch.profiler, export_chrome_trace",
}
# Program → (what it is, steps of a block, whether the promise is checked of it).
PROGRAMS = {
    "ocr-photos": ("guide 4's training, photos of CCPD's size", 60, True),
    "ocr": ("guide 4's training, the plates of examples/ml_ops", 400, True),
    "cnn-every": ("a CNN with short steps", 400, False),
}
# At most so many percent, with one step traced in:
PROMISED = 0.1
EVERY = 100


def measure(bench: Bench) -> Result:
    """Run the programs with every tool, on and off in turn."""
    python = pythons.find("3.11")
    if python is None:
        return {"why": "there is no Python 3.11"}
    result: Result = {}
    for program, (_, steps, _) in PROGRAMS.items():
        result[program] = {}
        for tool in TOOLS:
            pairs = bench.times(8 if tool == "every-ours" else 4, 2)
            found = one(bench, python, program, tool, steps=steps, pairs=pairs)
            if "traced" in found:
                # The CPU time of a traced step against that of its neighbours tells far more than
                # the wall time of two blocks of steps.
                found["step_us"] = found.pop("cpu_us")
                found["slower"] = interval([100.0 * part / EVERY for part in found.pop("traced")])
            result[program][tool] = found
    return result


def tables(result: Result) -> list[Table]:
    """One row a program and tool."""
    rows, notes = [], []
    for program, (name, _, _) in PROGRAMS.items():
        for tool, text in TOOLS.items():
            found = result.get(program, {}).get(tool, {})
            if "slower" in found:
                more = f"{found['traced_us']:.0f}" if "traced_us" in found else ""
                step = f"{found['step_us']:.0f}"
                rows.append((name, text, step, more, percent(found["slower"])))
            else:
                notes.append(f"{name}, {text}: {found.get('absent') or result.get('why')}.")
    head = (
        "program",
        "one step in a hundred with",
        "CPU time of a step, µs",
        "and of a traced one more, µs",
        "slow-down, %: median (95 % interval)",
    )
    return [Table("Following a guide", head, tuple(rows), tuple(notes))]


def verdicts(result: Result) -> list[Verdict]:
    """Guide 4's own training is slower by no more than promised."""
    made = []
    for program, (name, _, checked) in PROGRAMS.items():
        found = result.get(program, {}).get("every-ours", {})
        if not checked:
            continue
        if "slower" not in found:
            why = found.get("absent") or result.get("why")
            made.append(Verdict(f"{name}: not measured, {why}", None, final=True))
            continue
        figure = found["slower"]
        said = f"{name}, one step in {EVERY} traced: {percent(figure)} %; at most {PROMISED} %"
        made.append(Verdict(said, figure["median"] <= PROMISED))
    return made


SUITE = Suite("guides", measure, tables, verdicts)
