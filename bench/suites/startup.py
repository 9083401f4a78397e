"""Starting the recorder, and what it finds that it costs."""

from __future__ import annotations

from bench.harness import Bench, Result, Suite, Table, Verdict, at_most, number, spread

NAMES = {
    "init_us": "sw_init, calibration included",
    "first_section_us": "first section: its name, its thread",
    "second_section_us": "second section",
    "shutdown_us": "sw_shutdown",
}
COSTS = {
    "cost_section_ns": "section",
    "cost_section_low_ns": "section, low",
    "cost_section_high_ns": "section, high",
    "cost_stats_ns": "section, statistics only",
}


def measure(bench: Bench) -> Result:
    """Start many processes."""
    times: dict[str, list[float]] = {name: [] for name in NAMES}
    costs: dict[str, list[float]] = {name: [] for name in COSTS}
    for _ in range(bench.times(41, 7)):
        with bench.scratch() as scratch:
            printed = bench.run_json([bench.program("startup"), scratch / "run"])
            for name, figures in times.items():
                figures.append(printed[name])
            found = bench.run_json([bench.program("cursor"), printed["path"], "1"])
            for name, figures in costs.items():
                figures.append(found[name])
    return {
        "us": {name: spread(figures) for name, figures in times.items()},
        "calibrated_ns": {name: spread(figures) for name, figures in costs.items()},
    }


def tables(result: Result) -> list[Table]:
    """Times of the calls, and the calibration's findings."""
    keys = ("median", "min", "p10", "p90")
    start = tuple(
        (name, *(number(result["us"][key][part]) for part in keys)) for key, name in NAMES.items()
    )
    found = tuple(
        (name, *(number(result["calibrated_ns"][key][part]) for part in keys))
        for key, name in COSTS.items()
    )
    return [
        Table("Start and end", ("µs", *keys), start),
        Table("What the recorder measures of itself at its start", ("ns", *keys), found),
    ]


def verdicts(result: Result) -> list[Verdict]:
    """A start below a millisecond."""
    return [at_most("sw_init", result["us"]["init_us"]["median"], 1000.0, " µs")]


SUITE = Suite("startup", measure, tables, verdicts)
