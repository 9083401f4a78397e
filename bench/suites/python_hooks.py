"""Instructions of a training step and of the calls that are watched: what no neighbour changes."""

from __future__ import annotations

import json
import platform
import re
import shutil
from pathlib import Path
from typing import Any

from bench import pythons
from bench.harness import Bench, BenchError, Result, Suite, Table, Verdict, number
from bench.suites.instructions import totals

# Of the CNN; one in fifty has the backward times of its modules.
STEPS, QUICK_STEPS = 50, 10
PARTS = {
    "module": "a module within another",
    "loss": "a loss function",
    "update": "zero_grad, backward and step of an optimizer",
    "batch": "a batch of sixteen samples, no workers",
}
STATES = {
    "stepwatch": "steps, phases, modules, loader",
    "statistics": "statistics only",
}
# Shown, and not judged: what is promised of them is time (suite memory).
ALLOCATIONS = {
    "counters": "stepwatch.memory(sample_kb=0)",
    "memory": "stepwatch.memory()",
}
# Of guide 2's example, in Lightning.
FIT = "guide 2's CNN, 4 pictures of 16 x 16"
FITS = {
    "thread": "nothing, a second thread that sleeps",
    "idle": "ProfilerCallback, a step between two cycles",
    "active": "ProfilerCallback, an active step without torch's operators",
}
FIT_LIMIT = 1.0
# Percent of the instructions of a step with a second thread in the process, which recording needs.
LIMITS = {"stepwatch": 1.0, "statistics": 0.3}


def measure(bench: Bench) -> Result:
    """Run the programs under callgrind, without and with stepwatch."""
    if not shutil.which("valgrind"):
        return {"skipped": "valgrind is not installed"}
    python = pythons.find("3.11")
    if python is None:
        return {"skipped": "there is no Python 3.11"}
    if not any((bench.build / "bench" / "python").glob("stepwatch_bench_counted.*")):
        return {"skipped": "valgrind's headers were not there when this was built"}
    env = {**pythons.environment(bench), "OMP_NUM_THREADS": "1"}
    if platform.machine() == "x86_64":
        env["STEPWATCH_CLOCK"] = "tsc"  # valgrind's processor does not call it invariant.
    steps = bench.times(STEPS, QUICK_STEPS)
    each: dict[str, dict[str, float]] = {}
    for more in ((), ("lightning",)):
        with bench.scratch() as scratch:
            tool = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
            tool += ["--toggle-collect=stepwatch_counted", f"--callgrind-out-file={scratch}/out"]
            script = [pythons.script("hooks"), str(steps), *more]
            done = bench.run([*tool, python.path, *script], env)
            try:
                made = json.loads(done.stdout)
            except ValueError:
                if more:
                    break  # There is no Lightning.
                return {"skipped": f"it said: {done.stderr[-200:]}"}
            counts = counts_of(scratch)
        for part, state, calls in made:
            each.setdefault(part, {})[state] = counts[f"{part} {state}"] / calls
    return {"each": each, "steps": steps}


def counts_of(folder: Path) -> dict[str, int]:
    """Return what each of callgrind's files counted, by what it was told to call it."""
    found = {}
    for path in folder.glob("out.*"):
        told = re.search(r"^desc: Trigger: Client Request: (.+)$", path.read_text(), re.MULTILINE)
        if told:
            found[told[1].strip()] = totals(path)
    if not found:
        raise BenchError("callgrind has counted nothing")
    return found


def share(each: dict[str, Any], state: str, of: str = "thread", program: str = "cnn") -> float:
    """Return by how many percent a step of the CNN has more instructions."""
    step: dict[str, float] = each[program]
    return 100.0 * (step[state] / step[of] - 1.0)


def tables(result: Result) -> list[Table]:
    """The step as a whole, and its parts."""
    if "skipped" in result:
        return [Table("Instructions of a training", ("",), (), (f"Skipped: {result['skipped']}.",))]
    each = result["each"]
    rows = [("nothing, one thread", number(each["cnn"]["alone"]), "", "")]
    states = {"thread": "nothing, a second thread that sleeps", **STATES, **ALLOCATIONS}
    for state, text in states.items():
        if state not in each["cnn"]:
            continue  # counted before this was
        more = number(each["cnn"][state] - each["cnn"]["alone"])
        against = "" if state == "thread" else f"{share(each, state):+.2f}"
        rows.append((text, number(each["cnn"][state]), more, against))
    head = ("a step of the CNN", "instructions", "more than with one thread", "%, of two threads")
    parts = tuple(
        (text, *(number(each[part][state] - each[part]["thread"]) for state in STATES))
        for part, text in PARTS.items()
    )
    title = "Instructions of the training thread, counted by callgrind"
    made = [
        Table(title, head, tuple(rows)),
        Table("Instructions more for each call", ("call", *STATES.values()), parts),
    ]
    fit = each.get("baseline")
    if fit:
        lines = tuple(
            (
                text,
                number(fit[state]),
                "" if state == "thread" else f"{share(each, state, program='baseline'):+.2f}",
            )
            for state, text in FITS.items()
        )
        made.append(Table(f"A step of {FIT}", ("", "instructions", "% more"), lines))
    return made


def verdicts(result: Result) -> list[Verdict]:
    """A step has so many percent more instructions, at most."""
    if "skipped" in result:
        return [Verdict(f"instructions of a training: {result['skipped']}", None, final=True)]
    made = []
    for state, limit in LIMITS.items():
        value = share(result["each"], state)
        text = f"instructions of a step, {STATES[state]}: {value:+.2f} %, at most {limit} %"
        made.append(Verdict(text, value <= limit, final=True))
    if "baseline" in result["each"]:
        value = share(result["each"], "active", program="baseline")
        text = f"P-03, instructions of an active step of {FIT}, without operators"
        said = f"{text}: {value:+.2f} %, at most {FIT_LIMIT} %"
        made.append(Verdict(said, value <= FIT_LIMIT, final=True))
    return made


SUITE = Suite("python_hooks", measure, tables, verdicts, counts=True)
