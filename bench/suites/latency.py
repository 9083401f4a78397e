"""The slowest sections once the ring is pre-faulted."""

from __future__ import annotations

import statistics

from bench.harness import Bench, Result, Suite, Table, Verdict, at_most, number

KEYS = {"p50": "p50", "p99": "p99", "p99_9": "p99.9", "p99_99": "p99.99", "max": "max"}
NAMES = {"clock_pair": "pair of clock reads", "section": "section"}


def measure(bench: Bench) -> Result:
    """Take the median of each percentile over several processes."""
    runs = []
    for _ in range(bench.times(5, 1)):
        with bench.scratch() as scratch:
            program = bench.program("latency")
            samples = str(bench.times(1_000_000, 200_000))
            runs.append(bench.run_json([program, scratch / "run", samples]))
    return {
        "samples": runs[0]["samples"],
        "ns": {
            name: {key: statistics.median(run[name][key] for run in runs) for key in KEYS}
            for name in NAMES
        },
    }


def tables(result: Result) -> list[Table]:
    """Percentiles of both loops."""
    rows = tuple(
        (name, *(number(result["ns"][case][key]) for key in KEYS)) for case, name in NAMES.items()
    )
    title = f"Single sections, {result['samples']:,} samples, nothing subtracted"
    return [Table(title, ("ns", *KEYS.values()), rows)]


def verdicts(result: Result) -> list[Verdict]:
    """Below a microsecond, unless the machine itself is above."""
    limit = max(1000.0, result["ns"]["clock_pair"]["p99_9"])
    return [at_most("p99.9 of one section", result["ns"]["section"]["p99_9"], limit, " ns")]


SUITE = Suite("latency", measure, tables, verdicts)
