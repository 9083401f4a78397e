"""How tests of profilers look at their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import stepwatch

if TYPE_CHECKING:
    from stepwatch._core import ProfilerPath, ProfilerRow


def row_of(profiler: stepwatch.Profiler, name: str) -> ProfilerRow:
    row = profiler.row(name)
    assert row is not None
    return row


def calls_by_path(profiler: stepwatch.Profiler) -> dict[tuple[str, ...], int]:
    return {tuple(row["path"]): row["calls"] for row in profiler.paths()}


def path_of(profiler: stepwatch.Profiler, *path: str) -> ProfilerPath:
    (found,) = [row for row in profiler.paths() if tuple(row["path"]) == path]
    return found
