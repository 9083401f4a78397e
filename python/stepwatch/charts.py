"""Charts as SVG or PNG, drawn by the library itself: no other package is needed, and no display.

>>> from stepwatch import charts
>>> charts.histogram("times.png", {"load": [0.012, 0.013], "step": [0.21, 0.2]}, unit="s")

Each function returns a `Chart`; with ``None`` for the path nothing is written, and the chart can go
into a `grid`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Optional, Union

from stepwatch._core import Chart, _chart, _chart_page

if TYPE_CHECKING:
    from typing import Literal

    Scale = Literal["auto", "linear", "log"]
    Split = Literal["auto", "together", "apart"]

Path = Union[str, "os.PathLike[str]", None]
Number = Optional[float]

__all__ = ["Chart", "areas", "bars", "grid", "histogram", "lines"]


def _written(chart: Chart, path: Path) -> Chart:
    if path is not None:
        chart.write(path)
    return chart


def histogram(
    path: Path,
    data: Mapping[str, Iterable[Number]],
    *,
    title: str | None = None,
    x_label: str | None = None,
    y_label: str | None = None,
    unit: str | None = None,
    scale: Scale = "auto",
    split: Split = "auto",
    bins: int = 0,
    top: int = 0,
    empty: str | None = None,
    width: float = 0,
    height: float = 0,
) -> Chart:
    """Show how often values occur: one plot for series that are alike, else one for each.

    ``unit`` "s" shows times as s, ms or µs, "B" bytes as KiB, MiB or GiB; others as they are.
    ``empty`` says why there may be no data.
    """
    texts = (title, x_label, y_label, unit, None, empty)
    chart = _chart("histogram", data, texts, scale, split, bins, top, False, False, width, height)
    return _written(chart, path)


def _over_x(
    kind: str,
    path: Path,
    data: Mapping[str, Iterable[tuple[Number, Number]]],
    texts: tuple[str | None, ...],
    top: int,
    width: float,
    height: float,
) -> Chart:
    chart = _chart(kind, data, texts, "auto", "auto", 0, top, False, False, width, height)
    return _written(chart, path)


def lines(
    path: Path,
    data: Mapping[str, Iterable[tuple[Number, Number]]],
    *,
    title: str | None = None,
    x_label: str | None = None,
    y_label: str | None = None,
    x_unit: str | None = None,
    unit: str | None = None,
    top: int = 0,
    empty: str | None = None,
    width: float = 0,
    height: float = 0,
) -> Chart:
    """Draw a line through the points of each series; it is interrupted where a value is None."""
    texts = (title, x_label, y_label, x_unit, unit, empty)
    return _over_x("lines", path, data, texts, top, width, height)


def areas(
    path: Path,
    data: Mapping[str, Iterable[tuple[Number, Number]]],
    *,
    title: str | None = None,
    x_label: str | None = None,
    y_label: str | None = None,
    x_unit: str | None = None,
    unit: str | None = None,
    top: int = 0,
    empty: str | None = None,
    width: float = 0,
    height: float = 0,
) -> Chart:
    """Stack series that have the same x on each other, so that their sum is seen."""
    texts = (title, x_label, y_label, x_unit, unit, empty)
    return _over_x("areas", path, data, texts, top, width, height)


def bars(
    path: Path,
    data: Mapping[str, Number] | Mapping[str, Mapping[str, Number]],
    *,
    title: str | None = None,
    x_label: str | None = None,
    unit: str | None = None,
    top: int = 0,
    sum_others: bool = False,
    sort: bool = True,
    empty: str | None = None,
    width: float = 0,
    height: float = 0,
) -> Chart:
    """Draw a bar for each name, largest first, or one for each group: ``{name: {group: value}}``.

    Names beyond ``top`` (20) are counted, or become one bar with their sum.
    """
    texts = (title, x_label, None, unit, None, empty)
    chart = _chart("bars", data, texts, "auto", "auto", 0, top, sum_others, not sort, width, height)
    return _written(chart, path)


def grid(
    path: Path, charts: Sequence[Chart], *, columns: int = 2, title: str | None = None
) -> Chart:
    """Put charts side by side into one image."""
    return _written(_chart_page(tuple(charts), columns, title), path)
