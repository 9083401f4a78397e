"""What the sampler costs the thread that it looks at, beside other samplers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench import pythons
from bench.harness import Bench, BenchError, Result, Suite, Table, Verdict

TOOLS = {
    "nothing": "nothing at all: what the machine differs by",
    "stepwatch": "stepwatch.sample(hz=200)",
    "py-spy-nonblocking": "py-spy record --nonblocking, attached",
    "py-spy": "py-spy record, attached",
    "pyinstrument": "pyinstrument, every 5 ms",
    "scalene": "Scalene --cpu-only, every 5 ms",
}
# What a slow-down may be though the pairs can tell it from none, and what they have to resolve.
AIM = 0.3
RESOLVED = 1.0


def interval(figures: Sequence[float]) -> dict[str, float]:
    """Return the median and its 95 % confidence interval, without assuming a distribution."""
    ordered = sorted(figures)
    count = len(ordered)
    below, rank = 0.0, 0
    # The median lies below the k-th of the ordered figures with a binomial probability.
    while rank < count // 2:
        below += math.comb(count, rank) / 2.0**count
        if below > 0.025:
            break
        rank += 1
    low, high = max(0, rank - 1), count - max(1, rank)
    middle = (ordered[(count - 1) // 2] + ordered[count // 2]) / 2
    return {"median": middle, "low": ordered[low], "high": ordered[high], "pairs": count}


def one_tool(bench: Bench, python: pythons.Python, tool: str) -> dict[str, Any]:
    """Run the script with one tool and return the slow-downs in percent."""
    path = python.rivals or python.path
    ours = tool in ("nothing", "stepwatch")
    # Attaching takes long, so the rivals have fewer and longer pieces.
    pairs, blocks = bench.times(20, 6) if ours else bench.times(10, 3), 6 if ours else 2
    with bench.scratch(memory=True) as scratch:
        run = scratch / "run"
        command: list[str | Path] = [path]
        arguments = [str(run), tool, str(pairs), str(blocks)]
        if tool == "scalene":
            if bench.run([path, "-c", "import scalene"], codes=(0, 1)).code != 0:
                return {"absent": "Scalene is not installed"}
            command += ["-m", "scalene", "run", "--cpu-only", "--off", "--cpu-sampling-rate"]
            command += ["0.005", "-o", scratch / "scalene", pythons.script("sampler"), "---"]
        else:
            command.append(pythons.script("sampler"))
        # Threads of the maths library would make more noise than any sampler.
        env = {**pythons.environment(bench), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = bench.run([*command, *arguments], env)
        printed = Path(f"{run}.json")
        if not printed.exists():
            raise BenchError(f"{tool}: no figures; it said: {done.stderr.strip()[-200:]}")
        result: dict[str, Any] = json.loads(printed.read_text(encoding="utf-8"))
    found = result.pop("pairs", None)
    if found:
        for clock, index in (("wall", 0), ("cpu", 1)):
            slower = [100.0 * (pair["on"][index] / pair["off"][index] - 1.0) for pair in found]
            result[clock] = interval(slower)
    return result


def measure(bench: Bench) -> Result:
    """Run every tool with every Python."""
    versions: dict[str, Result] = {}
    for version in pythons.PROMISED:
        python = pythons.find(version)
        if python is None:
            versions[version] = {"why": "this Python is not here"}
        elif not pythons.is_built(bench, version):
            versions[version] = {"missing_all": pythons.NOT_BUILT}
        else:
            versions[version] = {"tools": {tool: one_tool(bench, python, tool) for tool in TOOLS}}
    return {"versions": versions}


def percent(found: dict[str, Any]) -> str:
    """Return a slow-down with its interval."""
    return f"{found['median']:+.2f} ({found['low']:+.2f} … {found['high']:+.2f})"


def tables(result: Result) -> list[Table]:
    """Wall time and CPU time of the thread."""
    rows: dict[str, list[tuple[str, ...]]] = {"wall": [], "cpu": []}
    notes = []
    for tool, name in TOOLS.items():
        for clock, made in rows.items():
            cells = []
            for version, one in result["versions"].items():
                found = one.get("tools", {}).get(tool, {})
                if clock in found:
                    cells.append(percent(found[clock]))
                elif "missing" in found:
                    cells.append(pythons.NOT_BUILT)
                else:
                    why = found.get("absent") or one.get("why") or one.get("missing_all")
                    cells.append("not measured")
                    notes.append(f"{name}, Python {version}: {why}.")
            made.append((name, *cells))
    head = ("Python", *result["versions"])
    title = "Samplers at 200 Hz, slow-down in %: median (95 % interval)"
    return [
        Table(f"{title}, wall time", head, tuple(rows["wall"]), tuple(dict.fromkeys(notes))),
        Table(f"{title}, CPU time of the sampled thread", head, tuple(rows["cpu"])),
    ]


def judged(version: str, one: Result) -> list[Verdict]:
    """Judge both clocks of one Python."""
    text = f"Python {version}: sampler at 200 Hz"
    if "tools" not in one:
        why, ok = pythons.why_not(one, ())
        return [Verdict(f"{text}: {why}", ok, final=True)]
    found = one["tools"]["stepwatch"]
    if "missing" in found:
        return [Verdict(f"{text}: {found['missing']} is {pythons.NOT_BUILT}", False, final=True)]
    made = []
    for clock, name in (("wall", "wall time"), ("cpu", "CPU time of the thread")):
        figure = found[clock]
        said = f"{text}, {name}: {percent(figure)} %, {figure['pairs']} pairs"
        unnoticed = figure["low"] <= 0.0 or figure["median"] <= AIM
        made.append(Verdict(f"{said}: none that they resolve, or at most {AIM} %", unnoticed))
        made.append(Verdict(f"{said}: they resolve {RESOLVED} %", figure["high"] <= RESOLVED))
    return made


def verdicts(result: Result) -> list[Verdict]:
    """No slow-down that twenty pairs can tell from none."""
    return [v for version, one in result["versions"].items() for v in judged(version, one)]


SUITE = Suite("python_sampler", measure, tables, verdicts)
