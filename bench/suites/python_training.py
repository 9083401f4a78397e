"""What watching an unchanged training costs, beside other profilers of training."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from bench import pythons
from bench.harness import Bench, BenchError, Result, Suite, Table, Verdict
from bench.suites.python_sampler import interval, percent

# Program → (what it is, steps of a block, tools).
PROGRAMS: dict[str, tuple[str, int, tuple[str, ...]]] = {
    "cnn": (
        "CNN, plain loop",
        1500,
        ("nothing", "stepwatch", "statistics", "torch.profiler", "torch.profiler-all", "cProfile"),
    ),
    "lightning": ("Lightning, the CNN", 1000, ("nothing", "stepwatch", "simple")),
    "lightning-small": ("Lightning, steps of a third of a ms", 1000, ("nothing", "stepwatch")),
    "hf": ("Trainer of transformers", 1000, ("nothing", "stepwatch")),
    "jax": ("JAX loop, steps of a ms", 500, ("nothing", "stepwatch")),
}
# Those that start the program themselves, by a command around it. They are compared with the
# program alone, in processes that take turns.
LAUNCHED: dict[str, str] = {
    "alone": "{python} {program} {arguments}",
    "again": "{python} {program} {arguments}",
    "run": "{stepwatch} run -o {folder}/out {program} {arguments}",
    "traceml": "{python} -m traceml_ai.launcher.cli run --logs-dir {folder}/logs {program}"
    " --args {arguments}",
    "scalene": "{python} -m scalene run --cpu-only -o {folder}/s.json {program} --- {arguments}",
}
NAMES = {
    "again": "nothing, another process: what processes differ by",
    "run": "stepwatch run",
    "traceml": "traceml run",
    "scalene": "scalene run",
    "nothing": "nothing at all: what the machine differs by",
    "stepwatch": "stepwatch: steps, phases, modules, loader, samples at 100 Hz",
    "statistics": "stepwatch, statistics only",
    "torch.profiler": "torch.profiler",
    "torch.profiler-all": "torch.profiler with shapes, memory, stacks",
    "cProfile": "cProfile",
    "simple": "Lightning's SimpleProfiler",
}
# At most so many percent.
PROMISED = {
    ("cnn", "stepwatch"): 1.0,
    ("cnn", "statistics"): 0.3,
    ("lightning", "stepwatch"): 1.0,
    ("hf", "stepwatch"): 1.0,
    ("jax", "stepwatch"): 1.0,
}


# These are measured more often than others.
OURS = ("nothing", "stepwatch", "statistics", "memory", "counters", "memory-run", "every-ours")


def one(
    bench: Bench,
    python: pythons.Python,
    program: str,
    tool: str,
    rivals: bool = False,
    steps: int | None = None,
    pairs: int | None = None,
    more: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Run one program with one tool and return its slow-downs in percent.

    ``rivals``: with the packages of those we compare with, behind the program's own. ``more``: of
    the environment.
    """
    steps = steps or PROGRAMS[program][1]
    ours = tool in OURS
    pairs = pairs or (bench.times(20, 4) if ours else bench.times(6, 2))
    with bench.scratch(memory=True) as scratch:
        run = scratch / "run"
        script = pythons.script("training")
        env = {**pythons.environment(bench), "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
        env.update(more or {})
        if rivals and python.rivals is not None:
            for folder in python.rivals.parents[1].glob("lib/python*/site-packages"):
                env["PYTHONPATH"] += os.pathsep + str(folder)
        done = bench.run([python.path, script, run, program, tool, str(pairs), str(steps)], env)
        printed = Path(f"{run}.json")
        if not printed.exists():
            raise BenchError(f"{program}, {tool}: no figures; it said: {done.stderr[-200:]}")
        result: dict[str, Any] = json.loads(printed.read_text(encoding="utf-8"))
    found = result.pop("pairs", None)
    if found:
        result["slower"] = interval([100.0 * (pair["on"] / pair["off"] - 1.0) for pair in found])
        result["step_us"] = median(pair["off"] for pair in found) / 1000 / result["steps"]
        result.update(traced_steps([pair for pair in found if pair.get("steps")]))
    return result


def traced_steps(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what CPU time traced steps take more than others, by part and in microseconds.

    Others are their neighbours; where those have something on them, too, steps without the tool.
    Where the step's own part was timed apart, that is what counts, and ``whole`` has the steps.
    """
    if not pairs:
        return {}
    steps = [pair["steps"] for pair in pairs]
    in_cycles = "around" in steps[0]
    others = [pair["off_step"] if in_cycles else pair["steps"]["others"] for pair in pairs]
    result: dict[str, Any] = {
        "traced": [one["traced"] / other - 1.0 for one, other in zip(steps, others)],
        "traced_us": median(one["traced"] - other for one, other in zip(steps, others)) / 1000,
        "cpu_us": median(others) / 1000,
    }
    if "own" in steps[0]:
        result["whole"] = result["traced"]
        result["traced"] = [
            part / other for one, other in zip(steps, others) for part in one["own"]
        ]
        result["traced_us"] = median(part for one in steps for part in one["own"]) / 1000
    if in_cycles:
        result["around_us"] = median(one["around"] for one in steps) / 1000
        idle = [one["others"] - other for one, other in zip(steps, others)]
        result["idle_us"] = median(idle) / 1000
    return result


def tools_table(result: Result, tools: Mapping[str, str], title: str, first: str) -> list[Table]:
    """Return a table with a row for each tool that one program was run with."""
    rows, notes = [], []
    for tool, text in tools.items():
        found = result.get(tool, {})
        if "slower" in found:
            rows.append((text, f"{found['step_us']:.0f}", percent(found["slower"])))
        else:
            notes.append(f"{text}: {found.get('absent') or result.get('why')}.")
    head = (first, "step, µs", "slow-down, %: median (95 % interval)")
    return [Table(title, head, tuple(rows), tuple(notes))]


def limit_verdict(result: Result, tool: str, text: str, limit: float) -> Verdict:
    """Say whether a tool slows the program down by no more than promised."""
    found = result.get(tool, {})
    if "slower" not in found:
        why = found.get("absent") or result.get("why")
        return Verdict(f"{text}: not measured, {why}", None, final=True)
    figure = found["slower"]
    said = f"{text}: {percent(figure)} %, {figure['pairs']} pairs; at most {limit} %"
    return Verdict(said, figure["median"] <= limit)


def launched(bench: Bench, python: pythons.Python, tool: str) -> dict[str, Any]:
    """Run the CNN alone and as the tool starts it, in turn; return the slow-downs in percent."""
    rounds, blocks, steps = bench.times(6, 1), 5, 400
    env = {**pythons.environment(bench), "OMP_NUM_THREADS": "1"}
    if python.rivals is not None:
        for folder in python.rivals.parents[1].glob("lib/python*/site-packages"):
            env["PYTHONPATH"] += os.pathsep + str(folder)
    slower, alone_us = [], []
    for number in range(rounds):
        times = {}
        for which in ("alone", tool) if number % 2 else (tool, "alone"):
            with bench.scratch(memory=True) as folder:
                words = LAUNCHED[which].format(
                    python=python.path,
                    stepwatch=bench.command,
                    folder=folder,
                    program=pythons.script("training"),
                    arguments=f"{folder}/run cnn alone {blocks} {steps}",
                )
                done = bench.run(words.split(), env, codes=range(256))
                printed = folder / "run.json"
                if not printed.exists():
                    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
                    return {"absent": f"{NAMES[tool]}: {last[:120]}"}
                result = json.loads(printed.read_text(encoding="utf-8"))
                times[which] = median(result["blocks"])
        slower.append(100.0 * (times[tool] / times["alone"] - 1.0))
        alone_us.append(times["alone"] / 1000 / steps)
    return {"slower": interval(slower), "step_us": median(alone_us)}


def measure(bench: Bench) -> Result:
    """Run every program with every tool, in the main environment."""
    python = pythons.find("3.11")
    if python is None:
        return {"why": "there is no Python 3.11"}
    result: Result = {
        program: {tool: one(bench, python, program, tool) for tool in tools}
        for program, (_, _, tools) in PROGRAMS.items()
    }
    for tool in LAUNCHED:
        if tool != "alone":
            result["cnn"][tool] = launched(bench, python, tool)
    return result


def tables(result: Result) -> list[Table]:
    """One row a program and tool."""
    rows, notes = [], []
    for program, (text, _, tools) in PROGRAMS.items():
        others = [tool for tool in LAUNCHED if program == "cnn" and tool != "alone"]
        for tool in (*tools, *others):
            found = result.get(program, {}).get(tool, {})
            if "slower" in found:
                step = f"{found['step_us']:.0f}"
                rows.append((text, NAMES[tool], step, percent(found["slower"])))
            else:
                notes.append(f"{text}: {found.get('absent') or result.get('why')}.")
    head = ("program", "tool", "step, µs", "slow-down, %: median (95 % interval)")
    return [Table("Watching a training", head, tuple(rows), tuple(dict.fromkeys(notes)))]


def verdicts(result: Result) -> list[Verdict]:
    """Slower by no more than promised, or by nothing that the pairs can tell."""
    made = []
    for (program, tool), limit in PROMISED.items():
        text = f"{PROGRAMS[program][0]}, {NAMES[tool]}"
        found = {"why": result.get("why"), **result.get(program, {})}
        made.append(limit_verdict(found, tool, text, limit))
    return made


SUITE = Suite("python_training", measure, tables, verdicts)
