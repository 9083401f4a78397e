"""Images of a code profiler, drawn natively: no other package, no display.

Each is written as PNG and as SVG. A picture for which there is nothing says why in the picture.
"""

from __future__ import annotations

from pathlib import Path

from stepwatch import charts
from stepwatch.compat._code_profiler.probes import MIB
from stepwatch.compat._names import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "visualizations"
_KINDS = (".png", ".svg")
_MOST = 12  # Bars in one picture; the longest count.
_SEVERITIES = ("critical", "high", "medium", "low")


def draw(folder: str, report: dict[str, Any], rank: str = "") -> list[str]:
    """Draw what a report has: times, memory, calls and bottlenecks; return the files."""
    details = report["detailed_metrics"]
    totals = details["total_times"]
    ranked = sorted(totals, key=lambda name: (-totals[name], name))
    longest = ranked[:_MOST]
    pictures = {
        "execution_times": _times(details, ranked),
        "average_times": charts.bars(
            None,
            {name: details["average_times"][name] for name in longest},
            title="Average time of a call",
            unit="s",
            empty="No section was profiled.",
        ),
        "memory_usage": _memory(report["performance_data"], details),
        "call_frequencies": charts.bars(
            None,
            {name: details["call_frequencies"].get(name) for name in longest},
            title="Call frequency analysis",
            x_label="calls a second",
            unit="/s",
            empty="No section was profiled.",
        ),
        "bottleneck_analysis": _bottlenecks(report["bottlenecks"]),
    }
    return _write(folder, pictures, rank)


def _times(details: dict[str, Any], names: list[str]) -> charts.Chart:
    return charts.histogram(
        None,
        {name: details["execution_times"][name] for name in names},
        title="Execution time distribution",
        x_label="time of a call",
        y_label="calls",
        unit="s",
        split="apart",
        empty="No section was profiled.",
    )


def _memory(data: dict[str, Any], details: dict[str, Any]) -> charts.Chart:
    """Draw memory over real seconds: what the monitor saw, else what was read around sections."""
    series: dict[str, list[tuple[float, float]]] = {}
    for name, key in (("process", "memory_usage"), ("GPU", "gpu_memory_usage")):
        moments = data["timestamps"].get(key, [])
        if moments:
            series[name] = [(t, v * MIB) for t, v in zip(moments, data[key])]
    began = "time since monitoring began"
    seen = details.get("memory_over_time")
    if not series and seen is not None:
        series["process"] = [(t, mb * MIB) for t, mb in zip(seen["seconds"], seen["mb"])]
        began = "time since profiling began"
    return charts.lines(
        None,
        series,
        title="Memory usage over time",
        x_label=began,
        y_label="memory",
        x_unit="s",
        unit="B",
        empty="Memory was not tracked.",
    )


def _bottlenecks(found: list[dict[str, Any]]) -> charts.Chart:
    """Draw how much each bottleneck takes, by its kind and severity."""
    shares: dict[str, dict[str, float | None]] = {}
    for severity in _SEVERITIES:
        for each in found:
            if each["severity"] == severity:
                groups = shares.setdefault(f"{each['type']} ({severity})", {})
                groups["share"] = 100 * float(each["evidence"].get("share") or 0.0)
    return charts.bars(
        None,
        {name: groups["share"] for name, groups in shares.items()},
        title="Bottleneck analysis",
        x_label="share of the time or of the memory",
        unit="%",
        sort=False,
        empty="No bottlenecks were found.",
    )


def draw_comparison(folder: str, reports: dict[str, dict[str, Any]]) -> list[str]:
    """Draw reports side by side: times, memory, calls, and totals."""
    details = {name: report["detailed_metrics"] for name, report in reports.items()}
    averages: dict[str, dict[str, float | None]] = {}
    for name, each in details.items():
        for section, seconds in each["average_times"].items():
            averages.setdefault(section, {})[name] = seconds
    common = [section for section, groups in averages.items() if len(groups) == len(details)]
    totals = {s: sum(each["total_times"][s] for each in details.values()) for s in common}
    longest = max(common, key=lambda section: totals[section], default="")
    times = {name: each["execution_times"].get(longest, []) for name, each in details.items()}
    nothing = "The reports have no section in common."
    plots = [
        charts.histogram(
            None,
            times,
            title=f"Execution times of {longest}",
            y_label="calls",
            unit="s",
            split="apart",
            empty=nothing,
        ),
        charts.bars(
            None,
            {name: _memory_of(report) for name, report in reports.items()},
            title="Memory of a call, or of a batch",
            unit="B",
            empty="Memory was not tracked.",
        ),
        charts.bars(None, averages, title="Average time of a call", unit="s", empty=nothing),
        charts.bars(
            None,
            {name: sum(each["total_times"].values()) for name, each in details.items()},
            title="Total time",
            unit="s",
            empty=nothing,
        ),
    ]
    page = charts.grid(None, plots, columns=2, title="Performance comparison")
    return _write(folder, {"profiling_comparison": page})


def _memory_of(report: dict[str, Any]) -> float | None:
    """Return the largest mean growth of a section, or what a batch takes; None: not known."""
    used = [
        sum(values) / len(values) * MIB
        for values in report["detailed_metrics"]["memory_usage"].values()
        if values
    ]
    used += [
        loader["avg_memory_per_batch_bytes"]
        for loader in report.get("data_loading", ())
        if loader.get("avg_memory_per_batch_bytes") is not None
    ]
    return max(used, default=None)


def draw_training(folder: str, name: str, history: list[dict[str, Any]]) -> list[str]:
    """Draw losses by epoch."""
    series: dict[str, list[tuple[float, float]]] = {}
    for title, key in (("training", "training_loss"), ("validation", "validation_loss")):
        points = [(e["epoch"], e[key]) for e in history if e.get(key) is not None]
        if points:
            series[title] = points
    chart = charts.lines(
        None,
        series,
        title=f"Loss of {name}",
        x_label="epoch",
        y_label="loss",
        empty="Nothing was trained.",
    )
    return _write(folder, {f"{safe(name)}_training": chart}, under="")


def _write(
    folder: str, pictures: dict[str, charts.Chart], rank: str = "", under: str = FOLDER
) -> list[str]:
    target = Path(folder) / under
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name, chart in pictures.items():
        for kind in _KINDS:
            path = str(target / f"{name}{rank}{kind}")
            chart.write(path)
            written.append(path)
    return written
