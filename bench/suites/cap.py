"""Twenty million sections in a ring of 16 MiB: file and memory stay below the cap."""

from __future__ import annotations

import statistics
from pathlib import Path

from bench.harness import Bench, Result, Suite, Table, Verdict, at_most, number

MAX_MB = 16


def folder_bytes(path: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(item.stat().st_size for item in path.rglob("*") if item.is_file())


def measure(bench: Bench) -> Result:
    """Do the same with and without recording, in turn."""
    sections = str(bench.times(20_000_000, 2_000_000))
    recorded = []
    plain = []
    for _ in range(bench.times(3, 1)):
        with bench.scratch() as scratch:
            program = bench.program("cap")
            run_dir = scratch / "run"
            plain.append(bench.run_json([program, "plain", run_dir, sections, str(MAX_MB)]))
            run = bench.run_json([program, "record", run_dir, sections, str(MAX_MB)])
            run["file_bytes"] = folder_bytes(run_dir)
            run["trace"] = bench.run_json([bench.program("cursor"), run["path"], "1"])
            recorded.append(run)
    return {"recorded": recorded, "plain": plain}


def figures(result: Result) -> dict[str, float]:
    """Return the medians, in MiB."""
    with_us = statistics.median(run["peak_rss_kib"] for run in result["recorded"]) / 1024
    without = statistics.median(run["peak_rss_kib"] for run in result["plain"]) / 1024
    return {
        "file": max(run["file_bytes"] for run in result["recorded"]) / 2**20,
        "with": with_us,
        "without": without,
        "added": with_us - without,
    }


def uncounted(result: Result) -> int:
    """Return how many sections are neither in the file nor counted as overwritten or dropped."""
    return sum(
        abs(
            run["sections"]
            - sum(run["trace"][key] for key in ("present", "dropped", "overwritten"))
        )
        for run in result["recorded"]
    )


def tables(result: Result) -> list[Table]:
    """Sizes."""
    sizes = figures(result)
    last = result["recorded"][-1]
    rows = (
        ("run directory on disk, MiB", number(sizes["file"])),
        ("peak resident memory without recording, MiB", number(sizes["without"])),
        ("peak resident memory with recording, MiB", number(sizes["with"])),
        ("added by recording, MiB", number(sizes["added"])),
        ("events in the file", f"{last['trace']['present']:,}"),
        ("events overwritten", f"{last['trace']['overwritten']:,}"),
        ("events dropped", f"{last['trace']['dropped']:,}"),
        ("ns a section, from the first to the last", number(last["ns_per_section"])),
    )
    title = f"{last['sections']:,} sections, policy ring, max_mb = {MAX_MB}"
    return [Table(title, ("", "measured"), rows)]


def verdicts(result: Result) -> list[Verdict]:
    """Both below the cap, and every section accounted for."""
    sizes = figures(result)
    missing = uncounted(result)
    return [
        at_most("ring: files", sizes["file"], MAX_MB, " MiB"),
        at_most("ring: resident memory added", sizes["added"], MAX_MB, " MiB"),
        Verdict(f"ring: sections not accounted for: {missing}", not missing),
    ]


SUITE = Suite("cap", measure, tables, verdicts)
