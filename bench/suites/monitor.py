"""What the monitor costs of a core, beside psutil in Python and wandb's system monitor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bench import pythons
from bench.harness import Bench, Result, Suite, Table, Verdict, at_most, spread

# Seconds between looks, and the share of a core in percent that the basic set may take.
LIMITS = {"1": 0.01, "0.01": 1.0}
SETS = {
    "basic": "stepwatch, basic set: CPU, memory, I/O, switches",
    "all": "stepwatch, all sources",
}
RIVALS = {
    "psutil": "psutil in a Python thread, basic set",
    "wandb": "wandb's system monitor (not below 0.1 s)",
}


def measure(bench: Bench) -> Result:
    """Look for some seconds, in turn, several times; the rivals once."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for interval in LIMITS:
        looks = bench.times(20, 6) if interval == "1" else bench.times(1000, 200)
        runs = found.setdefault(interval, {})
        for _ in range(bench.times(3, 1)):
            for name in SETS:
                with bench.scratch(memory=True) as scratch:
                    command: list[str | Path] = [
                        bench.program("monitor"),
                        scratch / "run",
                        interval,
                        str(looks),
                        name,
                    ]
                    runs.setdefault(name, []).append(bench.run_json(command))
        seconds = str(bench.times(20, 6))
        for name in RIVALS:
            with bench.scratch() as scratch:
                script = pythons.script("monitor")
                printed = bench.run_json([sys.executable, script, scratch, name, interval, seconds])
                runs.setdefault(name, []).append(printed)
    return {"intervals": found}


def percent(runs: list[dict[str, Any]]) -> float | None:
    """Return the median share of a core, or None where nothing could be measured."""
    figures = [run["percent"] for run in runs if "percent" in run]
    return float(spread(figures)["median"]) if figures else None


def cell(value: float | None) -> str:
    """Return a share in percent; below a thousandth it is noise."""
    return "not measured" if value is None else f"{value:.4f}" if value < 1 else f"{value:.2f}"


def tables(result: Result) -> list[Table]:
    """One row a tool, one column an interval."""
    rows = []
    notes = []
    for name, text in {**SETS, **RIVALS}.items():
        cells = [cell(percent(runs[name])) for runs in result["intervals"].values()]
        rows.append((text, *cells))
        for runs in result["intervals"].values():
            notes += [f"{text}: {run['absent']}." for run in runs[name] if "absent" in run]
    head = ("tool", *(f"every {interval} s" for interval in result["intervals"]))
    title = "Watching CPU, memory and I/O of the process: CPU time in % of a core"
    return [Table(title, head, tuple(rows), tuple(dict.fromkeys(notes)))]


def verdicts(result: Result) -> list[Verdict]:
    """The basic set keeps its limits, and costs less than the same with psutil."""
    made = []
    for interval, runs in result["intervals"].items():
        ours = percent(runs["basic"])
        text = f"monitor every {interval} s, basic set, of a core"
        assert ours is not None
        made.append(at_most(text, ours, LIMITS[interval], " %"))
        rival = percent(runs["psutil"])
        made.append(
            Verdict(f"{text}: psutil was not measured", None)
            if rival is None
            else at_most(f"{text}, beside psutil", ours / rival, 0.5, " of it")
        )
    return made


SUITE = Suite("monitor", measure, tables, verdicts)
