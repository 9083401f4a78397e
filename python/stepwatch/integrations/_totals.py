"""Rows of a table that grow: totals by a key."""

from __future__ import annotations

import threading

from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 4096


class Totals:
    """The rows of one table, each with the sums of what was added to its key."""

    def __init__(self, table: int) -> None:
        """Take the number of the table."""
        self._table = table
        self._lock = threading.Lock()
        self._rows: dict[tuple[Any, ...], tuple[int, list[int]]] = {}

    def add(self, key: tuple[Any, ...], values: list[int], flags: int = 0) -> None:
        """Add the values to the row of the key, whose first part is a name."""
        with self._lock:
            if key not in self._rows and len(self._rows) >= _MOST:
                key = ("(more)",)
            before, sums = self._rows.get(key, (0, [0] * len(values)))
            sums = [one + other for one, other in zip(sums, values)]
            handle, _ = _core.put_row(before, self._table, flags, key, tuple(sums))
            if before and handle != before:
                # What came before belongs to an earlier recording.
                sums = list(values)
                handle, _ = _core.put_row(handle, self._table, flags, key, tuple(sums))
            self._rows[key] = handle, sums
