"""``stepwatch.monitor``: CPU, memory, disks and network while the program runs."""

from __future__ import annotations

import os

from stepwatch._core import (
    _recording,
    monitor_interval,
    monitor_look,
    monitor_start,
    monitor_stop,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from stepwatch._core import Run

_FIRST_PID = os.getpid()


class Monitor:
    """Start and stop the monitor of this recording, and look at what it has seen.

    A thread of the recorder reads counters of the kernel every ``interval`` seconds (0.01 to 3600)
    and when it starts and stops; it never needs the GIL. What it sees goes into the recording, so
    without one nothing happens.

    >>> with stepwatch.monitor(0.1):
    ...     train()
    >>> stepwatch.monitor.series("process.rss")
    """

    def __init__(self) -> None:
        """Nothing is watched yet."""
        self._run: Run | None = None

    def __call__(self, interval: float | None = None) -> _Block:
        """Return a context manager: the monitor runs while its block does."""
        return _Block(self, interval)

    def start(self, interval: float | None = None) -> bool:
        """Start; a second call is harmless. Tell whether the monitor runs.

        Without an interval that of the option ``monitor_interval_s`` counts, else 1 second.
        """
        started = monitor_start(interval)
        if started:
            self._run = _recording(_FIRST_PID)[0]
        return started

    def stop(self) -> None:
        """Look once more and stop; fine when it does not run."""
        if self.running:
            self._run = _recording(_FIRST_PID)[0]
        monitor_stop()

    def look(self) -> bool:
        """Look now, beside the period; tell whether the monitor runs.

        It is seen when this returns, whatever the interval:

        >>> stepwatch.monitor.look()
        """
        return monitor_look()

    @property
    def running(self) -> bool:
        """Whether it runs now."""
        return monitor_interval() > 0

    @property
    def interval(self) -> float | None:
        """Seconds between two looks; None when it does not run."""
        return monitor_interval() or None

    def series(self, name: str | None = None) -> dict[str, list[tuple[float, float]]]:
        """Return what this process's monitor has seen so far, series by name.

        Each value comes with the moment it was seen, in seconds of ``time.monotonic()``. Sums that
        grow, such as CPU time, are given as growth a second: 1.5 of CPU time is one core and a
        half. With a name, the series of that name alone, if there is one.
        """
        run = _recording(_FIRST_PID)[0] or self._run
        found: dict[str, list[tuple[float, float]]] = {}
        if run is None:
            return found
        run._renew()
        pid = os.getpid()
        for row in run.monitor_values:
            if row["pid"] == pid and name in (None, row["name"]):
                values = found.setdefault(row["name"], [])
                values.append((row["time_ns"] / 1e9, row["value"]))
        return found

    def __repr__(self) -> str:
        """Tell whether it runs."""
        interval = self.interval
        return f"<stepwatch.monitor: {f'every {interval:g} s' if interval else 'stopped'}>"


class _Block:
    """The monitor for as long as a block takes; one that runs already goes on as it is."""

    def __init__(self, monitor: Monitor, interval: float | None) -> None:
        self._monitor = monitor
        self._interval = interval
        self._started: list[bool] = []

    def __enter__(self) -> Monitor:
        running = self._monitor.running
        self._started.append(self._monitor.start(self._interval) and not running)
        return self._monitor

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._started.pop():
            self._monitor.stop()


monitor = Monitor()
