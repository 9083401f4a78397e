"""The report of a code profiler: what it holds, and the files that it becomes."""

from __future__ import annotations

import json
from pathlib import Path

from stepwatch.compat._code_profiler import files
from stepwatch.compat._code_profiler.metrics import NAMES
from stepwatch.compat._code_profiler.probes import MIB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwatch.compat._code_profiler.metrics import ProfilerMetrics

NAME = "profiling_report.json"
_TOP = 5
_DETAILS = tuple(name for name in NAMES if name not in ("bottlenecks", "recommendations"))
COLUMNS = (
    "name", "category", "count", "total", "avg", "min", "max", "std", "p50", "p95", "p99",
    "memory", "gpu",
)  # fmt: skip


def build(
    metrics: ProfilerMetrics,
    found: tuple[list[dict[str, Any]], list[str]],
    data: dict[str, Any],
    extra: dict[str, Any],
) -> dict[str, Any]:
    """Return the report as plain values."""
    bottlenecks, recommendations = found
    rows = metrics.rows()
    details = {name: getattr(metrics, name) for name in _DETAILS}
    details["categories"] = {row["name"]: row["category"] for row in rows}
    details["paths"] = {
        "/".join(row["path"]): {
            "calls": row["calls"],
            "total_time": row["total_ns"] / 1e9,
            "self_time": row["self_ns"] / 1e9,
        }
        for row in metrics.paths()
    }
    summary = {
        "total_sections_profiled": len(rows),
        "total_function_calls": sum(row["calls"] for row in rows),
        "total_profiling_time": sum(row["self_ns"] for row in rows) / 1e9,
        "slowest_sections": _top(rows, lambda row: row["mean_ns"] / 1e9),
        "most_called_sections": _top(rows, lambda row: int(row["calls"])),
        "bottlenecks_found": len(bottlenecks),
        "errors": sum(row["errors"] for row in rows),
    }
    report: dict[str, Any] = files.plain(
        {
            "summary": summary,
            "bottlenecks": bottlenecks,
            "recommendations": recommendations,
            "detailed_metrics": details,
            "performance_data": data,
            **extra,
        }
    )
    return report


def _top(rows: list[dict[str, Any]], value: Any) -> list[list[Any]]:
    ranked = sorted(rows, key=lambda row: (-value(row), row["name"]))[:_TOP]
    return [[row["name"], value(row)] for row in ranked]


def write_tables(folder: str, metrics: ProfilerMetrics, data: dict[str, Any]) -> list[str]:
    """Write the sections and the samples as CSV; return the files."""
    gpu = metrics.gpu_memory_usage
    tracked = metrics.memory_usage
    rows = []
    for row in metrics.rows():
        name = row["name"]
        times = [row[key] for key in ("total_ns", "mean_ns", "min_ns", "max_ns", "std_ns")]
        times += [row[key] for key in ("p50_ns", "p95_ns", "p99_ns")]
        memory = row["memory_bytes"] / row["calls"] / MIB if name in tracked else None
        on_gpu = sum(gpu[name]) / len(gpu[name]) if gpu.get(name) else None
        seconds = [None if value is None else value / 1e9 for value in times]
        rows.append([name, row["category"], row["calls"], *seconds, memory, on_gpu])
    sections = files.of_rank(str(Path(folder) / "profiling_metrics.csv"))
    samples = files.of_rank(str(Path(folder) / "performance_data.csv"))
    files.write_csv(sections, COLUMNS, rows)
    files.write_csv(samples, ("time", "series", "value"), _samples(data))
    return [sections, samples]


def _samples(data: dict[str, Any]) -> list[list[Any]]:
    rows = [
        [moment, name, value]
        for name, moments in data["timestamps"].items()
        for moment, value in zip(moments, data[name])
    ]
    return sorted(rows, key=lambda row: (row[0], row[1]))


# --- Ranks -----------------------------------------------------------------------------------


def merge(folder: str) -> dict[str, Any] | None:
    """Put the reports of all ranks in a folder together, as far as they are there."""
    ranks: dict[str, dict[str, Any]] = {}
    for path in sorted(Path(folder).glob("profiling_report_rank*.json")):
        number = path.stem.rpartition("rank")[2]
        if number.isdigit():
            ranks[number] = json.loads(path.read_text(encoding="utf-8"))
    return merged(ranks) if ranks else None


def merged(ranks: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return one report of several ranks: sums of counts, and each rank's own numbers."""
    ordered = sorted(ranks, key=int)
    counts: dict[str, int] = {}
    totals: dict[str, float] = {}
    by_rank: dict[str, dict[str, float]] = {}
    for number in ordered:
        details = ranks[number]["detailed_metrics"]
        for name, count in details["call_counts"].items():
            counts[name] = counts.get(name, 0) + count
            totals[name] = totals.get(name, 0.0) + details["total_times"][name]
            by_rank.setdefault(name, {})[number] = details["average_times"][name]
    means = {name: totals[name] / counts[name] for name in counts if counts[name]}
    bottlenecks = [
        {**each, "rank": int(number)} for number in ordered for each in ranks[number]["bottlenecks"]
    ]
    summary = {
        "ranks": len(ordered),
        "total_sections_profiled": len(counts),
        "total_function_calls": sum(counts.values()),
        "total_profiling_time": sum(
            ranks[number]["summary"]["total_profiling_time"] for number in ordered
        ),
        "slowest_sections": _highest(means),
        "most_called_sections": _highest(counts),
        "bottlenecks_found": len(bottlenecks),
    }
    texts = [text for number in ordered for text in ranks[number]["recommendations"]]
    return {
        "summary": summary,
        "bottlenecks": bottlenecks,
        "recommendations": list(dict.fromkeys(texts)),
        "detailed_metrics": {
            "call_counts": counts,
            "total_times": totals,
            "average_times": means,
            "average_times_by_rank": by_rank,
        },
        "performance_data": {number: ranks[number]["performance_data"] for number in ordered},
    }


def _highest(values: dict[str, Any]) -> list[list[Any]]:
    ranked = sorted(values.items(), key=lambda item: (-item[1], item[0]))[:_TOP]
    return [[name, value] for name, value in ranked]
