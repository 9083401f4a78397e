"""What sweeps return: rows of numbers, the best of them, and the table that shows them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Column = tuple[str, str, Callable[[Any], str]]  # Heading, key, how a value is written.

MIB = 1048576


def number(digits: int, factor: float = 1.0) -> Callable[[Any], str]:
    """Return what writes a number with so many decimals; what is not known is a dash."""
    return lambda value: "-" if value is None else f"{value * factor:.{digits}f}"


def plain(value: Any) -> str:
    """Write a value as it is; what is not known is a dash."""
    return "-" if value is None else str(value)


def draw(columns: Sequence[Column], rows: Sequence[dict[str, Any]], remarks: list[str]) -> str:
    """Return the rows as a table, with a remark at the end of each."""
    lines = [[head for head, _, _ in columns]]
    lines += [[write(row.get(key)) for _, key, write in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines)]
    text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in lines]
    tails = ["", *(f"  {remark}" if remark else "" for remark in remarks)]
    return "\n".join((line + tail).rstrip() for line, tail in zip(text, tails))


class Sweep:
    """Rows of a sweep, one a setting, and which one is best."""

    def __init__(
        self,
        title: str,
        columns: Sequence[Column],
        rows: list[dict[str, Any]],
        best: dict[str, Any] | None,
        notes: list[str],
        more: dict[str, Any],
    ) -> None:
        """Take what was measured; ``more`` is what else :meth:`to_dict` has."""
        self.rows = rows
        self.best = best
        self.notes = notes
        self._title, self._columns, self._more = title, columns, more

    def _remark(self, row: dict[str, Any]) -> str:
        said = [str(row["why"])] if row.get("why") else []
        if row.get("given"):
            said.append("as given")
        if row is self.best:
            said.append("best")
        return ", ".join(said)

    def table(self) -> str:
        """Return the rows as text, and below them what there is to say about them."""
        remarks = [self._remark(row) for row in self.rows]
        return "\n".join([self._title, draw(self._columns, self.rows, remarks), *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as JSON has them."""
        best = None if self.best is None else dict(self.best)
        rows = [dict(row) for row in self.rows]
        return {**self._more, "rows": rows, "best": best, "notes": list(self.notes)}

    def __repr__(self) -> str:
        """Return the table."""
        return self.table()

    def _repr_html_(self) -> str:
        return _html(self.table())


class Measurement(dict):  # type: ignore[type-arg]
    """Numbers by name; shown as a list."""

    def __init__(self, title: str, values: dict[str, Any]) -> None:
        """Take a heading for :meth:`table` and the numbers."""
        super().__init__(values)
        self._title = title

    def table(self) -> str:
        """Return the numbers as text, one a line, and below them the notes."""
        width = max(map(len, self))
        lines = [
            f"  {key:{width}}  {_shown(value)}" for key, value in self.items() if key != "notes"
        ]
        return "\n".join([self._title, *lines, *self.get("notes", ())])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as JSON has them."""
        return dict(self)

    def __repr__(self) -> str:
        """Return the table."""
        return self.table()

    def _repr_html_(self) -> str:
        return _html(self.table())


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else plain(value)


def _html(text: str) -> str:
    from stepwatch._report import _escape

    return f"<pre>{_escape(text)}</pre>"
