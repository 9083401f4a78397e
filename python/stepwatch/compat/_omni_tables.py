"""Tables of the flexible profiler: as dicts, as text, as CSV, and as files."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sys
from collections import Counter
from pathlib import Path

from stepwatch.integrations._notes import note_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from stepwatch import Profiler
    from stepwatch._core import ProfilerPath, ProfilerRow

# Beyond this many names a printed table has one line for those that differ in numbers only.
MOST_LINES = 50
# A name is cut to fit the terminal, but to no fewer letters than these.
_LEAST_NAME = 20
# Clocks of several calls are read at several moments: so much more than the run is no overlap.
_OVERLAPS = 1.001


class Table(dict):  # type: ignore[type-arg]
    """Statistics by name, the longest total first; a method is also found by its bare name."""

    overlap: dict[str, float] | None = None  # Where they ran beside each other; see ``overlap``.

    def __missing__(self, key: str) -> Any:
        """Return the only entry whose bare name it is."""
        for entry in self.values():
            if entry.get("alias") == key:
                return entry
        raise KeyError(key)


def table(profiler: Profiler, *, under: str | None = None, aliases: bool = False) -> Table:
    """Return all sections of a profiler, or those inside of one, with their paths."""
    rows = profiler.rows(under=under)
    made = _table(profiler, rows)
    for path in profiler.paths(under=under):
        entry = made.get(path["name"])
        if entry is not None:  # None: it was called for the first time meanwhile
            entry["path"] = entry["path"] or ":".join(path["path"])
            entry["paths"][":".join(path["path"])] = _times(path)
    if aliases:
        _add_aliases(made)
    return made


def families(profiler: Profiler, *, under: str | None = None) -> Table:
    """Return what a printed table shows: families where there are very many names."""
    rows = profiler.rows(under=under)
    if len(rows) > MOST_LINES and under is None:
        rows = profiler.rows(families=True)
    return _table(profiler, rows)


def overlap(profiler: Profiler) -> dict[str, float] | None:
    """Return how much was measured in how much time, where that is more than there was.

    Tasks and threads run beside each other: their times add up to more than the run took, and a
    percentage of the run would mean nothing.
    """
    measured = sum(row["self_ns"] for row in profiler.rows()) / 1e9
    elapsed = profiler.elapsed_s
    if measured <= elapsed * _OVERLAPS:
        return None
    return {"measured_time": measured, "elapsed_time": elapsed, "at_once": measured / elapsed}


def _table(profiler: Profiler, rows: list[ProfilerRow]) -> Table:
    """Return rows with percentages of the run; of all that was measured where that is more."""
    beside = overlap(profiler)
    whole = profiler.elapsed_s if beside is None else beside["measured_time"]
    made = Table((row["name"], _entry(row, whole * 1e9)) for row in rows)
    made.overlap = beside
    return made


def _times(row: ProfilerRow | ProfilerPath) -> dict[str, Any]:
    return {
        "total_time": row["total_ns"] / 1e9,
        "calls": row["calls"],
        "avg_time": row["total_ns"] / row["calls"] / 1e9,
        "self_time": row["self_ns"] / 1e9,
    }


def _entry(row: ProfilerRow, run_ns: float) -> dict[str, Any]:
    return {
        **_times(row),
        "min": row["min_ns"] / 1e9,
        "max": row["max_ns"] / 1e9,
        "std": row["std_ns"] / 1e9,
        "p50": row["p50_ns"] / 1e9,
        "p95": row["p95_ns"] / 1e9,
        "errors": row["errors"],
        "percent": 100 * row["total_ns"] / run_ns if run_ns else None,
        "self_percent": 100 * row["self_ns"] / run_ns if run_ns else None,
        "path": None,
        "paths": {},
    }


def _add_aliases(made: Table) -> None:
    bare = {name: name.rpartition(".")[2] for name in made}
    uses = Counter(bare.values())
    for name, short in bare.items():
        unique = short != name and uses[short] == 1
        made[name]["alias"] = short if unique else None


# --- Text ------------------------------------------------------------------------------


def lines_of(entries: Table) -> str:
    """Return one line for each entry."""
    return "".join(
        f"{name}: Total time: {entry['total_time']:.6f}s, Calls: {entry['calls']}, "
        f"Avg time: {entry['avg_time']:.6f}s\n"
        for name, entry in entries.items()
    )


def grid_of(entries: Table, heading: str) -> str:
    """Return the entries as a table with borders; long names are cut where it would not fit."""
    share = "% of Run" if entries.overlap is None else "% of All"
    head = [heading, "Total Time (s)", "Calls", "Avg Time (s)", share]
    rows = [
        [
            name,
            f"{entry['total_time']:.6f}",
            str(entry["calls"]),
            f"{entry['avg_time']:.6f}",
            "" if entry["percent"] is None else f"{entry['percent']:.1f}",
        ]
        for name, entry in entries.items()
    ]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    others = sum(width + 3 for width in widths[1:])
    widths[0] = min(widths[0], max(shutil.get_terminal_size().columns - others - 4, _LEAST_NAME))
    for row in rows:
        row[0] = _cut(row[0], widths[0])
    border = "+" + "+".join("-" * (width + 2) for width in widths) + "+\n"

    def line(cells: list[str]) -> str:
        first, *others = zip(cells, widths)
        parts = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return "| " + " | ".join(parts) + " |\n"

    heading_border = border.replace("-", "=")
    text = border + line(head) + heading_border + "".join(line(row) + border for row in rows)
    return text + beside(entries)


def beside(entries: Table) -> str:
    """Return a line about times that overlap; nothing where they do not."""
    if entries.overlap is None:
        return ""
    measured, elapsed = entries.overlap["measured_time"], entries.overlap["elapsed_time"]
    return (
        f"Some ran beside each other: {measured:.6f}s were measured in {elapsed:.6f}s, and "
        "percentages are of the former.\n"
    )


def _cut(name: str, width: int) -> str:
    """Return a name no longer than that; both of its ends stay."""
    if len(name) <= width:
        return name
    head = (width - 3) // 2
    return name[:head] + "..." + name[len(name) - (width - 3 - head) :]


def report(entries: Table, heading: str, *, grid: bool) -> str:
    """Return the entries as lines, or as a table for people."""
    return grid_of(entries, heading) if grid else lines_of(entries)


def block_report(blocks: Table, *, grid: bool = False) -> str:
    """Return the block profile as text."""
    return "\nBlock Profiling Report:\n" + report(blocks, "Block Name", grid=grid)


def overall_report(functions: Table, blocks: Table, *, grid: bool = False) -> str:
    """Return the overall profile as text."""
    return (
        "\nOverall Profiling Report:\n"
        "Function Profiling:\n"
        + report(functions, "Function Name", grid=grid)
        + "\nBlock Profiling:\n"
        + report(blocks, "Block Name", grid=grid)
    )


def is_terminal() -> bool:
    """Tell whether what is printed is seen by somebody."""
    try:
        return sys.stdout is not None and sys.stdout.isatty()
    except (AttributeError, ValueError):
        return False


# --- CSV -------------------------------------------------------------------------------

_COLUMNS = ("total_time", "calls", "avg_time", "self_time", "min", "max", "std", "p50", "p95",
            "errors", "percent", "self_percent", "path")  # fmt: skip


def to_csv(tables: Iterable[tuple[str, Table]]) -> str:
    """Return tables as CSV, each row with the kind of its table."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("kind", "name", *_COLUMNS))
    for kind, entries in tables:
        for name, entry in entries.items():
            values = [entry[column] for column in _COLUMNS]
            writer.writerow((kind, name, *("" if value is None else value for value in values)))
    return text.getvalue()


# --- Files -----------------------------------------------------------------------------


def to_json(document: Any) -> str:
    """Return a document as JSON that people can read, too."""
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def write(path: str, text: str) -> bool:
    """Write a file, whole or not at all; False: it could not be, which was said once."""
    target = Path(path)
    meanwhile = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            meanwhile.write_text(text, encoding="utf-8", errors="backslashreplace")
            meanwhile.replace(target)
        except BaseException:
            meanwhile.unlink(missing_ok=True)
            raise
    except OSError as error:
        why = error.strerror or error
        note_once(
            f"Profiles cannot be written into {str(target.parent)!r} ({why}); the program goes on "
            "without. Set profiler_config.output_dir to a folder that can be written."
        )
        return False
    return True
