"""What is read at both ends of a section besides the clock: I/O, allocations, the GPU.

Each probe has ``begin()``, whose result is given to ``end(name, ...)``, and keeps its sums by the
name of the section. A profiler has the probes that its configuration asks for, and no others.
"""

from __future__ import annotations

import sys
import time
from collections import deque

import stepwatch
from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MIB = 1048576
LIMIT = 100_000  # Values kept of one section.
_SITES = 5
# As the kernel tells them.
_IO_KEYS = (
    "read_bytes",
    "written_bytes",
    "read_calls",
    "write_calls",
    "device_read_bytes",
    "device_written_bytes",
)


class Io:
    """What the kernel counts of this process: bytes and calls, in and out."""

    def __init__(self) -> None:
        self.sections: dict[str, dict[str, int]] = {}

    def begin(self) -> tuple[int | None, ...] | None:
        return _core.process_io()

    def end(self, name: str, before: tuple[int | None, ...] | None) -> None:
        now = _core.process_io()
        if before is None or now is None:
            return
        sums = self.sections.get(name)
        if sums is None:
            sums = self.sections[name] = dict.fromkeys(_IO_KEYS, 0)
        for key, value, at in zip(_IO_KEYS, now, before):
            sums[key] += (value or 0) - (at or 0)

    def close(self) -> None:
        pass


class Resident:
    """Memory of the process over time: a look at both ends of sections, not more often than useful.

    Where there are many looks every other is forgotten, and the next ones are further apart.
    """

    _MOST = 2048
    _GAP = 0.01  # Seconds between two looks.

    def __init__(self) -> None:
        self.points: list[tuple[float, int]] = []
        self._gap, self._next = self._GAP, 0.0
        self.look()

    def look(self, at_once: bool = False) -> None:
        """Note how much memory there is now, unless the last look was just before."""
        now = time.monotonic()
        if now < self._next and not at_once:
            return
        self._next = now + self._gap
        self.points.append((now, _core.resident([0])))
        if len(self.points) > self._MOST:
            del self.points[1::2]
            self._gap *= 2

    def begin(self) -> None:
        self.look()

    def end(self, _name: str, _before: None) -> None:
        self.look()

    def over_time(self) -> dict[str, list[float]]:
        """Return the seconds since the first look, and the megabytes of each."""
        points = list(self.points)
        return {
            "seconds": [round(t - points[0][0], 6) for t, _ in points],
            "mb": [size / MIB for _, size in points],
        }

    def close(self) -> None:
        self.look(at_once=True)


class Allocations:
    """Blocks and bytes that were allocated and freed meanwhile, and where."""

    def __init__(self, allocations: bool, deallocations: bool, snapshots: bool) -> None:
        self.counts_allocations, self.counts_frees = allocations, deallocations
        self.takes_snapshots = snapshots
        self.allocated: dict[str, dict[str, int]] = {}
        self.freed: dict[str, dict[str, int]] = {}
        self.kept: dict[str, int] = {}
        self._snapshots: dict[str, list[Any]] = {}
        self._seen: dict[str, int] = {}
        self._memory = stepwatch.memory()
        self.why: str | None = None
        try:
            self._memory.start()
        except RuntimeError as error:
            self.why = f"allocations are not counted: {error}"

    def begin(self) -> tuple[int, int, int, int]:
        memory = self._memory
        return memory.blocks, memory.allocated, memory.blocks_freed, memory.freed

    def end(self, name: str, before: tuple[int, int, int, int]) -> None:
        if self.why is not None:
            return
        now = self.begin()
        blocks, size, gone, freed = (after - at for after, at in zip(now, before))
        if self.counts_allocations:
            _count(self.allocated, name, blocks, size)
        if self.counts_frees:
            _count(self.freed, name, gone, freed)
        if self.counts_allocations and self.counts_frees:
            self.kept[name] = self.kept.get(name, 0) + size - freed
        if self.takes_snapshots:
            self._take(name)

    def _take(self, name: str) -> None:
        """Keep the first snapshot and the newest; after the first few only every 2nd, 4th, 8th."""
        count = self._seen[name] = self._seen.get(name, 0) + 1
        if count & (count - 1):
            return
        kept = self._snapshots.setdefault(name, [])
        del kept[1:]
        kept.append(self._memory.snapshot())

    def snapshots(self) -> dict[str, dict[str, Any]]:
        """Return by section what is in use after it, the lines that allocated most, and growth."""
        found: dict[str, dict[str, Any]] = {}
        for name, kept in self._snapshots.items():
            growth = kept[-1] - kept[0] if len(kept) > 1 else None
            found[name] = {
                "calls": self._seen[name],
                "in_use_bytes": kept[-1].in_use,
                "top": [dict(site) for site in kept[-1].top(_SITES)],
                "growth_bytes": None if growth is None else growth.in_use,
                "growth": [] if growth is None else [dict(site) for site in growth.top(_SITES)],
            }
        return found

    def close(self) -> None:
        if self._memory.running:
            self._memory.stop()


def _count(into: dict[str, dict[str, int]], name: str, blocks: int, size: int) -> None:
    sums = into.setdefault(name, {"count": 0, "bytes": 0})
    sums["count"] += blocks
    sums["bytes"] += size


def cuda() -> Any:
    """Return torch.cuda where the program uses a GPU through it, else None."""
    torch: Any = sys.modules.get("torch")
    found = getattr(torch, "cuda", None)
    if found is None or not found.is_available() or not found.is_initialized():
        return None
    return found


class GpuMemory:
    """What torch allocated on the device meanwhile, in bytes."""

    def __init__(self) -> None:
        self.values: dict[str, deque[int]] = {}

    def begin(self) -> int | None:
        device = cuda()
        return None if device is None else int(device.memory_allocated())

    def end(self, name: str, before: int | None) -> None:
        device = cuda()
        if device is not None:
            now = int(device.memory_allocated())
            kept = self.values.setdefault(name, deque(maxlen=LIMIT))
            kept.append(now - (before or 0))

    def close(self) -> None:
        pass


class CudaEvents:
    """Time on the device, from pairs of events; nothing waits for the device meanwhile."""

    def __init__(self) -> None:
        self._pool: list[Any] = []
        self._pending: deque[tuple[str, Any, Any]] = deque(maxlen=LIMIT)
        self._seconds: dict[str, deque[float]] = {}

    def begin(self) -> Any:
        device = cuda()
        return None if device is None else self._event(device)

    def _event(self, device: Any) -> Any:
        event = self._pool.pop() if self._pool else device.Event(enable_timing=True)
        event.record()
        return event

    def end(self, name: str, begin: Any) -> None:
        device = cuda()
        if device is None or begin is None:
            return
        self._pending.append((name, begin, self._event(device)))
        self._settle(wait=False)

    def _settle(self, wait: bool) -> None:
        """Read pairs that are over; ``wait`` for the others."""
        while self._pending:
            name, begin, end = self._pending[0]
            if not end.query():
                if not wait:
                    return
                end.synchronize()
            self._pending.popleft()
            kept = self._seconds.setdefault(name, deque(maxlen=LIMIT))
            kept.append(begin.elapsed_time(end) / 1e3)
            self._pool += [begin, end]

    def seconds(self) -> dict[str, list[float]]:
        """Return the seconds of each call by section; waits for those that are under way."""
        self._settle(wait=True)
        return {name: list(values) for name, values in self._seconds.items()}

    def close(self) -> None:
        self._settle(wait=True)
        self._pool.clear()


class Moments:
    """When sections were open, for what the monitor saw at that time."""

    def __init__(self) -> None:
        self.open: dict[str, deque[tuple[float, float]]] = {}

    def begin(self) -> float:
        return time.monotonic()

    def end(self, name: str, begin: float) -> None:
        kept = self.open.setdefault(name, deque(maxlen=LIMIT))
        kept.append((begin, time.monotonic()))

    def spans(self) -> dict[str, list[tuple[float, float]]]:
        """Return from when to when each section was open."""
        return {name: list(kept) for name, kept in self.open.items()}

    def close(self) -> None:
        pass


def during(
    opened: dict[str, list[tuple[float, float]]], series: list[tuple[float, float]]
) -> dict[str, list[float]]:
    """Return the values of a series by the section that was open then."""
    found: dict[str, list[float]] = {}
    for name, spans in opened.items():
        first, last = min(a for a, _ in spans), max(b for _, b in spans)
        near = [(t, value) for t, value in series if first <= t <= last]
        inside = [v for t, v in near if any(begin <= t <= end for begin, end in spans)]
        if inside:
            found[name] = inside
    return found
