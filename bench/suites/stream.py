"""Ten million events into a file, the report on them, and reading them back."""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

from bench.harness import (
    Bench,
    Result,
    Suite,
    Table,
    Verdict,
    at_least,
    at_most,
    mib,
    number,
    spread,
)


def measure(bench: Bench) -> Result:
    """Record several times beside the same loop without the recorder; report on the last."""
    events = bench.times(10_000_000, 1_000_000)
    runs = []
    plain = []
    with bench.scratch() as scratch:
        run_dir = scratch / "run"
        for _ in range(bench.times(5, 2)):
            shutil.rmtree(run_dir, ignore_errors=True)
            program = bench.program("stream")
            plain.append(bench.run_json([program, "plain", run_dir, str(events)]))
            run = bench.run_json([program, "record", run_dir, str(events)])
            rounds = str(bench.times(5, 2))
            run["trace"] = bench.run_json([bench.program("cursor"), run["path"], rounds])
            runs.append(run)
        reports = []
        for _ in range(bench.times(5, 2)):
            done = bench.run([bench.command, "report", run_dir])
            reports.append({"seconds": done.seconds, "peak_rss_bytes": done.peak_rss_bytes})
        exports = []
        for _ in range(bench.times(3, 1)):
            done = bench.run(
                [bench.command, "export", run_dir, "--to", "chrome", "-o", "/dev/null"]
            )
            exports.append({"seconds": done.seconds, "peak_rss_bytes": done.peak_rss_bytes})
        file_bytes = Path(runs[-1]["path"]).stat().st_size
    return {
        "runs": runs,
        "plain": plain,
        "reports": reports,
        "exports": exports,
        "file_bytes": file_bytes,
    }


def lost(result: Result) -> int:
    """Return how many events are neither in the file nor counted as lost, over all runs."""
    return sum(
        abs(run["events"] - sum(run["trace"][key] for key in ("present", "dropped", "overwritten")))
        for run in result["runs"]
    )


def tables(result: Result) -> list[Table]:
    """Writing and reading."""
    keys = ("ns_per_event", "largest_gap_us", "long_gaps", "waits", "faults", "shutdown_ms")
    names = (
        "ns an event",
        "largest gap, µs",
        "gaps above 100 µs",
        "times the writer waited",
        "page faults of the writer",
        "shutdown, ms",
    )
    rows = [
        (
            name,
            number(statistics.median(run[key] for run in result["plain"])),
            number(statistics.median(run[key] for run in result["runs"])),
            number(max(run[key] for run in result["runs"])),
        )
        for key, name in zip(keys, names)
    ]
    dropped = [run["trace"]["dropped"] for run in result["runs"]]
    rows.append(
        ("events dropped, counted", "-", number(statistics.median(dropped)), str(max(dropped)))
    )
    count = result["runs"][0]["events"]
    head = (f"{count:,} events", "clock reads only", "recorded", "worst run")
    note = f"File: {mib(result['file_bytes'])}."
    return [Table("Policy stream", head, tuple(rows), (note,)), reading_table(result)]


def reading_table(result: Result) -> Table:
    """Return the table of what it takes to look at the file."""
    seconds = spread([report["seconds"] for report in result["reports"]])
    memory = spread([report["peak_rss_bytes"] / 2**20 for report in result["reports"]])
    rate = spread([rate for run in result["runs"] for rate in run["trace"]["million_events_per_s"]])
    exports = result.get("exports", [])  # older baselines have none
    present = result["runs"][-1]["trace"]["present"] / 1e6
    traced = [
        ("export --to chrome, million events/s", [present / e["seconds"] for e in exports]),
        ("export --to chrome, peak MiB", [e["peak_rss_bytes"] / 2**20 for e in exports]),
    ]
    rows = tuple(
        (name, *(number(figures[key]) for key in ("median", "min", "p10", "p90")))
        for name, figures in (
            ("stepwatch report, s", seconds),
            ("stepwatch report, peak MiB", memory),
            ("sw_cursor, million events/s", rate),
            *((name, spread(values)) for name, values in traced if values),
        )
    )
    return Table("Reading that file", ("", "median", "min", "p10", "p90"), rows)


def verdicts(result: Result) -> list[Verdict]:
    """Nothing lost uncounted, a writer that never waits, a reader that is quick and small."""
    waits = max(run["waits"] for run in result["runs"])
    rate = [rate for run in result["runs"] for rate in run["trace"]["million_events_per_s"]]
    seconds = statistics.median(report["seconds"] for report in result["reports"])
    memory = statistics.median(report["peak_rss_bytes"] for report in result["reports"])
    return [
        Verdict(
            f"events neither in the file nor counted as lost: {lost(result)}", not lost(result)
        ),
        Verdict(f"times the writer waited: {waits}, must be 0", waits == 0),
        at_most("stepwatch report", seconds, 2.0, " s"),
        at_most("stepwatch report, peak memory", memory / 1e6, 200.0, " MB"),
        at_least("sw_cursor", statistics.median(rate), 20.0, " million events/s"),
    ]


SUITE = Suite("stream", measure, tables, verdicts)
