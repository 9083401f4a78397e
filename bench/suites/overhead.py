"""What recording costs a program: as the report states it, and as on and off runs show it."""

from __future__ import annotations

import json
import statistics
from typing import Any

from bench.harness import Bench, BenchError, Result, Suite, Table, Verdict, spread

PROGRAMS = {
    "mlp, batches of 32": ("--batch", "32"),
    "mlp, batches of 1": ("--batch", "1", "--epochs", "8"),
}


def one_run(bench: Bench, arguments: tuple[str, ...], on: bool) -> dict[str, Any]:
    """Train once; with recording also read what the report says it cost."""
    with bench.scratch() as scratch:
        env = {"STEPWATCH_ENABLED": "1" if on else "0", "STEPWATCH_OUT": str(scratch / "run")}
        # Exit code 1 is a model that has not learnt enough: one of the shorter runs.
        done = bench.run([bench.example("mlp"), *arguments], env, codes=(0, 1))
        run = {"seconds": done.seconds, "cpu_seconds": done.cpu_seconds, "stdout": done.stdout}
        if on:
            report = bench.run([bench.command, "report", "--json", scratch / "run"])
            run["overhead"] = json.loads(report.stdout)["overhead"]
        return run


def measure(bench: Bench) -> Result:
    """Alternate on and off, the first of the two changing places."""
    programs = {}
    for name, arguments in PROGRAMS.items():
        runs: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
        for turn in range(bench.times(9, 2)):
            for on in (turn % 2 == 0, turn % 2 == 1):
                runs[on].append(one_run(bench, arguments, on))
        outputs = {run["stdout"] for both in runs.values() for run in both}
        if len(outputs) != 1:
            raise BenchError(f"{name}: recording changed what the program printed")
        programs[name] = {
            "off_s": spread([run["seconds"] for run in runs[False]]),
            "on_s": spread([run["seconds"] for run in runs[True]]),
            "measured_percent": spread(percents(runs, "seconds")),
            "measured_cpu_percent": spread(percents(runs, "cpu_seconds")),
            "fastest_percent": 100.0 * (fastest(runs[True]) / fastest(runs[False]) - 1.0),
            "stated": [run["overhead"] for run in runs[True]],
        }
    return {"programs": programs}


def fastest(runs: list[dict[str, Any]]) -> float:
    """Return the least CPU time of several runs: the one that was disturbed least."""
    return min(float(run["cpu_seconds"]) for run in runs)


def percents(runs: dict[bool, list[dict[str, Any]]], key: str) -> list[float]:
    """Return how much longer each recorded run took than its neighbour."""
    return [100.0 * (on[key] / off[key] - 1.0) for on, off in zip(runs[True], runs[False])]


def stated(program: dict[str, Any], key: str) -> float | None:
    """Return the median of what the reports stated, or None where one did not know."""
    values = [overhead[key] for overhead in program["stated"]]
    return None if None in values else statistics.median(values)


def percent(value: float | None) -> str:
    """Return a percentage with its sign."""
    return "-" if value is None else f"{value:+.2f}"


def tables(result: Result) -> list[Table]:
    """Stated and measured side by side."""
    rows = []
    for name, program in result["programs"].items():
        low, high = stated(program, "low"), stated(program, "high")
        measured = program["measured_percent"]
        cpu = program["measured_cpu_percent"]
        rows.append(
            (
                name,
                f"{program['off_s']['median']:.3f}",
                percent(stated(program, "percent")),
                f"{percent(low)} … {percent(high)}",
                percent(measured["median"]),
                f"{percent(measured['p10'])} … {percent(measured['p90'])}",
                percent(cpu["median"]),
                percent(program["fastest_percent"]),
            )
        )
    head = (
        "",
        "off, s",
        "stated, %",
        "low … high",
        "on/off, %",
        "p10 … p90",
        "CPU time, %",
        "least CPU time, %",
    )
    return [Table("A whole program: stated by the report, and measured", head, tuple(rows))]


def verdicts(result: Result) -> list[Verdict]:
    """Nothing is promised of a program that is not known; its results were compared above."""
    names = ", ".join(result["programs"])
    return [Verdict(f"same output with and without recording ({names})", True)]


SUITE = Suite("overhead", measure, tables, verdicts)
