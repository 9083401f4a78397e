"""The report of a code profiler as one page: for the eye what the JSON file is for programs."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

NAME = "profiling_report.html"
RECORDING = "recording.html"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: 0.5rem 0 1.5rem; }
th, td { border-bottom: 1px solid #8884; padding: 0.25rem 0.75rem; text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
img { background: #fff; max-width: 100%; margin: 0.5rem 0; }
.critical, .high { color: #b3261e; font-weight: 600; }
.medium { color: #b26a00; font-weight: 600; }
@media (prefers-color-scheme: dark) { body { background: #16181d; color: #e6e6e6; }
a { color: #8ab4f8; } .critical, .high { color: #ff8a80; } .medium { color: #ffc46b; } }
"""
# What is told of a loader and of a training, with how it is written.
_LOADING = (
    ("Average batch time", "avg_batch_time", "{:.4f} s"),
    ("First batch time", "first_batch_time", "{:.4f} s"),
    ("Throughput", "throughput", "{:.1f} samples/second"),
    ("Memory per batch", "avg_memory_per_batch", "{:.3f} MB"),
    ("Augmentation per batch", "avg_augmentation_time", "{:.4f} s"),
    ("Collate per batch", "avg_collate_time", "{:.4f} s"),
    ("Batches", "total_batches_profiled", "{}"),
    ("Workers", "workers", "{}"),
)
_TRAINING = (
    ("Average total time", "avg_total_time", "{:.4f} s"),
    ("Average forward time", "avg_forward_time", "{:.4f} s"),
    ("Average backward time", "avg_backward_time", "{:.4f} s"),
    ("Average optimizer time", "avg_optimizer_time", "{:.4f} s"),
    ("Throughput", "throughput", "{:.1f} batches/second"),
    ("Memory per batch", "avg_memory_usage", "{:.3f} MB"),
    ("GPU memory per batch", "avg_gpu_memory_usage", "{:.3f} MB"),
    ("Batches", "total_batches_profiled", "{}"),
    ("Device", "device", "{}"),
)
_RESOURCES = (
    ("CPU of the process", "cpu_usage", "%"),
    ("CPU of the machine", "system_cpu_usage", "%"),
    ("Memory", "memory_usage", "MB"),
    ("GPU utilization", "gpu_utilization", "%"),
    ("GPU memory", "gpu_memory_usage", "MB"),
)


def page(report: dict[str, Any], images: Sequence[str] = (), recording: str | None = None) -> str:
    """Return the page of a report, with its images inside."""
    parts = ["<h1>Profiling report</h1>", *_summary(report), *_bottlenecks(report)]
    parts += _sections(report["detailed_metrics"])
    for title, key, lines in (
        ("Data loading", "data_loading", _LOADING),
        ("Training", "training", _TRAINING),
    ):
        for one in report.get(key, ()):
            name = f": {one['loader']}" if one.get("loader") else ""
            told = [
                (text, form.format(one[field]))
                for text, field, form in lines
                if one.get(field) is not None
            ]
            parts += [f"<h2>{escape(title + name)}</h2>", _table(("", "value"), told)]
    parts += _resources(report["performance_data"])
    if images:
        parts.append("<h2>Visualizations</h2>")
        parts += [_image(path) for path in images]
    if report.get("notes"):
        parts += ["<h2>Notes</h2>", _list(report["notes"])]
    if recording is not None:
        link = f'<a href="{escape(recording)}">The page of the recording</a>'
        parts.append(f"<p>{link} has steps, files, sockets and the environment.</p>")
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"<title>Profiling report</title><style>{_STYLE}</style>"
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _summary(report: dict[str, Any]) -> list[str]:
    summary = report["summary"]
    rows = [
        ("Sections profiled", summary["total_sections_profiled"]),
        ("Total function calls", summary["total_function_calls"]),
        ("Total profiling time", f"{summary['total_profiling_time']:.4f} s"),
        ("Bottlenecks found", summary["bottlenecks_found"]),
        ("Calls that raised", summary["errors"]),
    ]
    return ["<h2>Summary</h2>", _table(("", "value"), rows)]


def _bottlenecks(report: dict[str, Any]) -> list[str]:
    found = report["bottlenecks"]
    parts = ["<h2>Bottlenecks</h2>"]
    if not found:
        parts.append("<p>No bottlenecks were found.</p>")
    else:
        rows = "".join(
            f'<tr><td class="{escape(each["severity"])}">{escape(each["severity"])}</td>'
            f"<td>{escape(each['description'])}</td><td>{escape(each['recommendation'])}</td></tr>"
            for each in found
        )
        heads = "<tr><th>severity</th><th>what</th><th>recommendation</th></tr>"
        parts.append(f"<table>{heads}{rows}</table>")
    if report["recommendations"]:
        parts += ["<h2>Recommendations</h2>", _list(report["recommendations"], "ol")]
    return parts


def _sections(details: dict[str, Any]) -> list[str]:
    totals = details["total_times"]
    rows = []
    for name in sorted(totals, key=lambda name: (-totals[name], name)):
        grown = details["memory_usage"].get(name)
        times = [details[key].get(name) for key in ("average_times", "min_times", "max_times")]
        rows.append(
            (
                name,
                details["categories"].get(name, ""),
                details["call_counts"][name],
                *[_seconds(value) for value in (totals[name], *times)],
                f"{sum(grown):.1f}" if grown else "",
            )
        )
    heads = ("section", "category", "calls", "total", "average", "min", "max", "memory (MB)")
    return ["<h2>Sections</h2>", _table(heads, rows, 2)]


def _resources(data: dict[str, Any]) -> list[str]:
    rows = [
        (text, f"{sum(values) / len(values):.1f} {unit}", f"{max(values):.1f} {unit}", len(values))
        for text, key, unit in _RESOURCES
        for values in (data.get(key),)
        if values
    ]
    parts = ["<h2>CPU, memory and GPU</h2>"]
    if not rows:
        text = "They were not monitored: start_performance_monitoring() begins that."
        return [*parts, f"<p>{text}</p>"]
    return [*parts, _table(("", "mean", "most", "samples"), rows)]


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.6f} s"


def _list(texts: Iterable[str], kind: str = "ul") -> str:
    return f"<{kind}>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</{kind}>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]], texts: int = 1) -> str:
    """Return a table; the columns after the first few are numbers."""

    def line(cells: Sequence[Any], kind: str) -> str:
        return "".join(
            f"<{kind}{' class=number' if place >= texts else ''}>{escape(str(cell))}</{kind}>"
            for place, cell in enumerate(cells)
        )

    body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
    return f"<table><tr>{line(heads, 'th')}</tr>{body}</table>"


def _image(path: str) -> str:
    file = Path(path)
    data = base64.b64encode(file.read_bytes()).decode("ascii")
    return f'<p><img alt="{escape(file.stem)}" src="data:image/svg+xml;base64,{data}"></p>'
