"""Reports side by side: which sections became faster, and whether that may be chance."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_LEAST = 5  # Calls of a section that a test needs.


def compare(
    reports: Sequence[dict[str, Any] | str] | Mapping[str, dict[str, Any] | str],
    folder: str | None = None,
) -> dict[str, Any]:
    """Compare the first report with each other one; draw a picture where a folder is given."""
    if not isinstance(reports, Mapping):
        reports = {f"report_{number}": each for number, each in enumerate(reports, 1)}
    if len(reports) < 2:
        raise ValueError("compare takes two reports or more")
    loaded = {name: _load(each) for name, each in reports.items()}
    names = list(loaded)
    first = loaded[names[0]]["detailed_metrics"]["execution_times"]
    changes = []
    for other in names[1:]:
        second = loaded[other]["detailed_metrics"]["execution_times"]
        for section in first:
            if section in second:
                changes.append(
                    {
                        "section": section,
                        "before": names[0],
                        "after": other,
                        **_change(first[section], second[section]),
                    }
                )
    changes.sort(key=lambda each: (-abs(math.log(each["speedup"] or 1.0)), each["section"]))
    result: dict[str, Any] = {
        "reports": names,
        "changes": changes,
        "total_times": {
            name: sum(each["detailed_metrics"]["total_times"].values())
            for name, each in loaded.items()
        },
    }
    if folder is not None:
        from stepwatch.compat._code_profiler import pictures

        result["images"] = pictures.draw_comparison(folder, loaded)
    return result


def _load(report: dict[str, Any] | str) -> dict[str, Any]:
    if isinstance(report, dict):
        return report
    document: dict[str, Any] = json.loads(Path(report).read_text(encoding="utf-8"))
    return document


def _change(before: list[float], after: list[float]) -> dict[str, Any]:
    """Return the ratio of the means, and the chance of such a difference between equals."""
    old, new = sum(before) / len(before), sum(after) / len(after)
    p_value = rank_test(before, after)
    return {
        "before_avg": old,
        "after_avg": new,
        "speedup": old / new if new else None,
        "p_value": p_value,
        "significant": p_value is not None and p_value < 0.01,
    }


def rank_test(first: list[float], second: list[float]) -> float | None:
    """Return the two-sided p of Mann, Whitney and Wilcoxon; None: there are too few values."""
    n, m = len(first), len(second)
    if n < _LEAST or m < _LEAST:
        return None
    values = sorted([(value, 0) for value in first] + [(value, 1) for value in second])
    ranks = ties = 0.0
    begin = 0
    while begin < len(values):
        end = begin
        while end < len(values) and values[end][0] == values[begin][0]:
            end += 1
        count = end - begin
        ranks += (begin + end + 1) / 2 * sum(1 for _, which in values[begin:end] if which == 0)
        ties += count**3 - count
        begin = end
    total = n + m
    spread = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    if spread <= 0:
        return 1.0
    z = (abs(ranks - n * (n + 1) / 2 - n * m / 2) - 0.5) / math.sqrt(spread)
    return math.erfc(max(z, 0.0) / math.sqrt(2))
