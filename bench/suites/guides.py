"""What following the guides costs: steps that are traced, beside those that are not."""

from __future__ import annotations

from typing import NamedTuple

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict
from bench.suites.python_sampler import interval, percent
from bench.suites.python_training import one

TOOLS = {
    "nothing": "nothing at all: what the machine differs by",
    "every-ours": "stepwatch.compat.ml_ops: torch_profiler",
    "every-torch": "torch.profiler, export_chrome_trace",
    "callback": "stepwatch.compat.lightning_guide: ProfilerCallback",
    "callback-own": "the same without torch's operators: our own recording",
}
OURS = ("every-ours", "callback", "callback-own")


class Program(NamedTuple):
    """What is measured: its name, steps of a block, the tools, and what is promised of them."""

    name: str
    steps: int
    tools: tuple[str, ...]
    limits: dict[str, tuple[str, float]]  # by tool: row, percent; others are shown


CALLBACK = ("callback", "callback-own")
OWN = {"callback-own": ("P-03", 1.0)}
EVERY_TOOLS = ("nothing", "every-ours", "every-torch")
# One step in so many is traced in the programs of guide 4; guide 2 speaks of the traced ones.
EVERY = {"ocr-photos": 100, "ocr": 100, "cnn-every": 100}
PROGRAMS = {
    "ocr-photos": Program(
        "guide 4, photos of CCPD's size", 41, EVERY_TOOLS, {"every-ours": ("P-04", 0.1)}
    ),
    "ocr": Program("guide 4, the small plates of the example", 401, EVERY_TOOLS, {}),
    "cnn-every": Program("a CNN with short steps", 401, EVERY_TOOLS, {}),
    "baseline": Program("guide 2's BaselineCNN, as the example has it", 122, CALLBACK, OWN),
    # Where steps are long enough for what torch's profiler takes for its operators.
    "baseline-photos": Program(
        "guide 2's BaselineCNN, 32 pictures of 224 x 224",
        42,
        CALLBACK,
        {**OWN, "callback": ("C-19", 5.0)},
    ),
    "baseline-small": Program("the same, 4 pictures of 16 x 16", 122, CALLBACK, {}),
}
# Pictures of that size make tensors of 50 MB. Whether libc's heap has room for one depends on which
# small blocks lie where, and torch's profiler makes many: a step has from 25,000 to 160,000 page
# faults. Mapped anew each time, they cost the same in every step.
ENVIRONMENT = {"baseline-photos": {"MALLOC_MMAP_THRESHOLD_": str(1 << 20)}}


def measure(bench: Bench) -> Result:
    """Run the programs with every tool, on and off in turn."""
    python = pythons.find("3.11")
    if python is None:
        return {"why": "there is no Python 3.11"}
    result: Result = {}
    for key, program in PROGRAMS.items():
        result[key] = {}
        for tool in program.tools:
            pairs = bench.times(8 if tool in OURS else 4, 2)
            more = ENVIRONMENT.get(key)
            found = one(bench, python, key, tool, steps=program.steps, pairs=pairs, more=more)
            if "traced" in found:
                # The CPU time of a traced step against that of its neighbours tells far more than
                # the wall time of two blocks of steps.
                found["step_us"] = found.pop("cpu_us")
                for name, parts in (("slower", "traced"), ("by_steps", "whole")):
                    if parts in found:
                        found[name] = interval(
                            [100 * part / EVERY.get(key, 1) for part in found.pop(parts)]
                        )
            result[key][tool] = found
    return result


def tables(result: Result) -> list[Table]:
    """One row a program and tool."""
    rows, notes = [], []
    for key, program in PROGRAMS.items():
        for tool in program.tools:
            found = result.get(key, {}).get(tool, {})
            if "slower" in found:
                parts = [
                    f"{found[name]:.0f}" if name in found else ""
                    for name in ("traced_us", "around_us", "idle_us")
                ]
                rows.append(
                    (
                        program.name,
                        TOOLS[tool],
                        f"{found['step_us']:.0f}",
                        *parts,
                        str(EVERY.get(key, 1)),
                        percent(found["slower"]),
                    )
                )
            else:
                why = found.get("absent") or result.get("why")
                notes.append(f"{program.name}, {TOOLS[tool]}: {why}.")
    head = (
        "program",
        "traced with",
        "CPU time of a step, µs",
        "of a traced one more, µs",
        "to begin, read and write it, µs",
        "of a step between cycles more, µs",
        "traced: one in",
        "slow-down, %: median (95 % interval)",
    )
    return [Table("Following a guide", head, tuple(rows), tuple(notes))]


def verdicts(result: Result) -> list[Verdict]:
    """The guides' own trainings are slower by no more than promised."""
    made = []
    for key, program in PROGRAMS.items():
        for tool, (row, limit) in program.limits.items():
            found = result.get(key, {}).get(tool, {})
            what = f"{row}, {program.name}, {TOOLS[tool]}"
            value = found.get("slower", {}).get("median")
            if value is None:
                why = found.get("absent") or result.get("why")
                made.append(Verdict(f"{what}: not measured, {why}", None, final=True))
                continue
            often = EVERY.get(key, 1)
            which = f"one step in {often} traced" if often > 1 else "a traced step"
            measured = f"{percent(found['slower'])} %"
            if "by_steps" in found:
                measured += f" (by whole steps {percent(found['by_steps'])} %)"
            made.append(Verdict(f"{what}, {which}: {measured}; at most {limit} %", value <= limit))
    return made


SUITE = Suite("guides", measure, tables, verdicts)
