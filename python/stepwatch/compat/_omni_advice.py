"""What the tables of the flexible profiler say by themselves, each with its numbers.

Transfers, batch sizes and layers (RULE-03 to RULE-05) take more than names and times: the report of
``stepwatch run`` and ``stepwatch.find_batch_size`` tell of them.
"""

from __future__ import annotations

from statistics import median

from stepwatch.compat._omni_tables import overlap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwatch import Profiler
    from stepwatch._core import ProfilerRow


def advice(blocks: Profiler, functions: Profiler) -> list[dict[str, Any]]:
    """Return what to look at first: of the blocks, or of the functions where there are none."""
    profiler = blocks if blocks.rows() else functions
    rows = profiler.rows()
    whole = sum(row["self_ns"] for row in rows)
    if whole == 0:
        return []
    found = [*_waits(profiler, rows, whole), *_longest(rows, whole)]
    beside = overlap(profiler)
    if beside is not None:
        for each in found:
            _say_overlap(each, beside)
    return found


def _say_overlap(advice: dict[str, Any], beside: dict[str, float]) -> None:
    """Say that times overlap: what would be gained without one of them cannot be told then."""
    advice["text"] += (
        f" Some ran beside each other: {beside['measured_time']:.3f} s were measured in "
        f"{beside['elapsed_time']:.3f} s, so the run would gain less."
    )
    advice["evidence"]["gain_at_most"] = None
    advice["evidence"]["at_once"] = beside["at_once"]


def _advice(rule: str, severity: str, text: str, row: ProfilerRow, share: float) -> dict[str, Any]:
    return {
        "rule": rule,
        "severity": severity,
        "text": text,
        "evidence": {
            "name": row["name"],
            "calls": row["calls"],
            "self_time": row["self_ns"] / 1e9,
            "total_time": row["total_ns"] / 1e9,
            "share": share,
            # Without it the rest would take so many times less, at most.
            "gain_at_most": None if share >= 1 else 1 / (1 - share),
        },
    }


def _longest(rows: list[ProfilerRow], whole: int) -> list[dict[str, Any]]:
    """Name what takes significantly more time than the others."""
    if len(rows) < 2:
        return []
    found = []
    for row in sorted(rows, key=lambda row: -row["self_ns"]):
        share = row["self_ns"] / whole
        others = median(each["self_ns"] for each in rows if each is not row)
        if share < 0.3 and (share < 0.1 or row["self_ns"] < 3 * others):
            break
        text = (
            f"{row['name']} takes {100 * share:.0f} % of the profiled time "
            f"({row['self_ns'] / 1e9:.3f} s of its own in {row['calls']} calls). "
            "Put @profile_line_by_line on it to see which line it is."
        )
        found.append(_advice("RULE-01", "low", text, row, share))
    return found


def _waits(profiler: Profiler, rows: list[ProfilerRow], whole: int) -> list[dict[str, Any]]:
    """Name what loads data, where that takes long."""
    found = []
    for row in rows:
        share = row["self_ns"] / whole
        if share <= 0.05 or profiler.section(row["name"]).phase != "data_wait":
            continue
        severity = "critical" if share > 0.5 else "high" if share > 0.2 else "medium"
        text = (
            f"{row['name']} takes {100 * share:.0f} % of the profiled time, "
            f"{row['mean_ns'] / 1e6:.1f} ms a call. Load in parallel and ahead: DataLoader has "
            "num_workers and prefetch_factor; stepwatch.benchmark_dataloader tells how many."
        )
        found.append(_advice("RULE-02", severity, text, row, share))
    return found
