"""What watching an unchanged training costs, beside other profilers of training."""

from __future__ import annotations

import json
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
        400,
        ("nothing", "stepwatch", "statistics", "torch.profiler", "torch.profiler-all", "cProfile"),
    ),
    "lightning": ("Lightning", 1000, ("nothing", "stepwatch", "simple")),
    "hf": ("Trainer of transformers", 200, ("nothing", "stepwatch")),
    "jax": ("JAX loop", 500, ("nothing", "stepwatch")),
}
NAMES = {
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


def one(bench: Bench, python: pythons.Python, program: str, tool: str) -> dict[str, Any]:
    """Run one program with one tool and return its slow-downs in percent."""
    steps = PROGRAMS[program][1]
    ours = tool in ("nothing", "stepwatch", "statistics")
    pairs = bench.times(20, 4) if ours else bench.times(6, 2)
    with bench.scratch(memory=True) as scratch:
        run = scratch / "run"
        script = pythons.script("training")
        env = {**pythons.environment(bench), "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
        done = bench.run([python.path, script, run, program, tool, str(pairs), str(steps)], env)
        printed = Path(f"{run}.json")
        if not printed.exists():
            raise BenchError(f"{program}, {tool}: no figures; it said: {done.stderr[-200:]}")
        result: dict[str, Any] = json.loads(printed.read_text(encoding="utf-8"))
    found = result.pop("pairs", None)
    if found:
        result["slower"] = interval([100.0 * (pair["on"] / pair["off"] - 1.0) for pair in found])
        result["step_us"] = median(pair["off"] for pair in found) / 1000 / result["steps"]
    return result


def measure(bench: Bench) -> Result:
    """Run every program with every tool, in the main environment."""
    python = pythons.find("3.11")
    if python is None:
        return {"why": "there is no Python 3.11"}
    return {
        program: {tool: one(bench, python, program, tool) for tool in tools}
        for program, (_, _, tools) in PROGRAMS.items()
    }


def tables(result: Result) -> list[Table]:
    """One row a program and tool."""
    rows, notes = [], []
    for program, (text, _, tools) in PROGRAMS.items():
        for tool in tools:
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
        found = result.get(program, {}).get(tool, {})
        if "slower" not in found:
            why = found.get("absent") or result.get("why")
            made.append(Verdict(f"{text}: not measured, {why}", None, final=True))
            continue
        figure = found["slower"]
        said = f"{text}: {percent(figure)} %, {figure['pairs']} pairs; at most {limit} %"
        made.append(Verdict(said, figure["median"] <= limit))
    return made


SUITE = Suite("python_training", measure, tables, verdicts)
