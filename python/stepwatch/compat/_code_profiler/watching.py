"""What the monitor saw while it was asked to watch: CPU, memory, GPU and I/O over time."""

from __future__ import annotations

import os
import time
from bisect import bisect_left

import stepwatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwatch.compat._code_profiler.recorder import Recorder

MIB = 1048576
_CPU = ("process.cpu_user", "process.cpu_system")
_IO = {
    "io_read_mb_per_s": "process.read",
    "io_written_mb_per_s": "process.written",
}
_NETWORK = (".received", ".sent")
# A look that belongs to a stop comes a little later than the call.
_LATE = 0.05


class Watching:
    """Starts and stops the monitor, and keeps from when to when."""

    def __init__(self, recorder: Recorder) -> None:
        """Nothing is watched yet."""
        self._recorder = recorder
        self._since: float | None = None
        self._spans: list[tuple[float, float]] = []
        self._started = False
        self._kept: dict[str, list[tuple[float, float]]] = {}
        self.why: str | None = None

    @property
    def running(self) -> bool:
        """Whether it watches now."""
        return self._since is not None

    def start(self) -> bool:
        """Begin; a second call is harmless."""
        recorder = self._recorder
        if self.running:
            return True
        since, looks = time.monotonic(), stepwatch.monitor.running
        if not recorder.begin_use() or recorder.session is None or not recorder.session.alive:
            self.why = getattr(recorder.session, "why", None) or "profiling is off"
            return False
        self._since = since
        # One that this profiler has started for its sections is stopped by the user's call, too.
        self._started = recorder.watches_gpu
        recorder.watches_gpu = False
        if not stepwatch.monitor.running:
            self._started = stepwatch.monitor.start(recorder.config.monitor_interval)
        elif looks:  # One that begins now looks by itself.
            stepwatch.monitor.look()
        return True

    def stop(self) -> None:
        """Look once more and end; fine when it does not run."""
        if self._since is None:
            return
        if self._started:
            stepwatch.monitor.stop()
            self._started = False
        else:
            stepwatch.monitor.look()
        self._spans.append((self._since, time.monotonic() + _LATE))
        self._since = None
        self._recorder.changes += 1

    def keep(self) -> None:
        """Remember what there is, before the recording ends."""
        self._kept = self.series()

    def series(self) -> dict[str, list[tuple[float, float]]]:
        """Return the series of the recording within the times of watching."""
        session = self._recorder.session
        if session is None or not session.alive:
            return self._kept
        spans = list(self._spans)
        if self._since is not None:
            spans.append((self._since, time.monotonic() + _LATE))
        if not spans:
            return {}
        return {
            name: [(t, v) for t, v in values if any(a <= t <= b for a, b in spans)]
            for name, values in stepwatch.monitor.series().items()
        }

    def whole(self, ending: str) -> list[tuple[float, float]]:
        """Return all that was seen of the GPUs' series of that ending, also unasked."""
        session = self._recorder.session
        if session is None or not session.alive:
            return []
        return sorted(
            point
            for name, values in stepwatch.monitor.series().items()
            if name.startswith("gpu.") and name.endswith(ending)
            for point in values
        )

    def data(self) -> dict[str, Any]:
        """Return the lists that the guide shows, and the seconds at which they were seen."""
        on = self._recorder.config.is_on
        series = self.series()
        began = min((points[0][0] for points in series.values() if points), default=0.0)
        found: dict[str, Any] = {"cpu_usage": [], "system_cpu_usage": [], "memory_usage": []}
        found.update(gpu_memory_usage=[], gpu_utilization=[], timestamps={})

        def put(key: str, points: list[tuple[float, float]], factor: float) -> None:
            found[key] = [float(value) * factor for _, value in points]
            found["timestamps"][key] = [round(t - began, 6) for t, _ in points]

        if on("track_cpu"):
            put("cpu_usage", _sum([series.get(name, []) for name in _CPU]), 100.0)
            system = _at(series.get("system.cpu", []), series.get(_CPU[0], []))
            # The kernel counts whole ticks: in a few milliseconds that may seem more than there is.
            cores = os.cpu_count() or float("inf")
            put("system_cpu_usage", [(t, min(value, cores)) for t, value in system], 100.0)
        if on("track_memory"):
            put("memory_usage", series.get("process.rss", []), 1 / MIB)
        if on("track_gpu"):
            if on("track_gpu_memory"):
                put("gpu_memory_usage", _gpu(series, ".memory_used_bytes"), 1 / MIB)
            if on("track_gpu_utilization"):
                put("gpu_utilization", _gpu(series, ".utilisation_percent"), 1.0)
        if on("track_io") and series:
            for key, name in _IO.items():
                put(key, series.get(name, []), 1 / MIB)
            if on("track_network_operations"):
                names = [n for n in series if n.startswith("net.") and n.endswith(_NETWORK)]
                put("network_mb_per_s", _sum([series[name] for name in names]), 1 / MIB)
        return found


def _gpu(series: dict[str, list[tuple[float, float]]], ending: str) -> list[tuple[float, float]]:
    """Return a series of all GPUs; of several the sum, or of percentages the mean."""
    names = [name for name in series if name.startswith("gpu.") and name.endswith(ending)]
    points = _sum([series[name] for name in names])
    if ending.endswith("percent") and len(names) > 1:
        return [(t, value / len(names)) for t, value in points]
    return points


def _at(
    seen: list[tuple[float, float]], moments: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Return a series that is read more rarely at the moments of another.

    A value is the mean since the one before it, so it holds for all moments between the two.
    """
    if not seen:
        return []
    ends = [t for t, _ in seen]
    return [(t, seen[min(bisect_left(ends, t), len(seen) - 1)][1]) for t, _ in moments]


def _sum(many: list[list[tuple[float, float]]]) -> list[tuple[float, float]]:
    """Add up series that were seen at the same moments."""
    sums: dict[float, float] = {}
    for points in many:
        for moment, value in points:
            sums[moment] = sums.get(moment, 0.0) + value
    return sorted(sums.items())
