"""What a code profiler has measured so far, as plain dictionaries of plain numbers."""

from __future__ import annotations

from stepwatch.compat._code_profiler.probes import MIB, during

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwatch.compat._code_profiler.recorder import Recorder
    from stepwatch.compat._code_profiler.watching import Watching

FILE_OPERATIONS = ("open", "read", "write", "sync", "map", "close", "rename")
NETWORK_OPERATIONS = ("connect", "accept", "send", "receive")

_PAGE = 4096  # Bytes.

NAMES = (
    "execution_times",
    "total_times",
    "average_times",
    "min_times",
    "max_times",
    "memory_usage",
    "peak_memory",
    "memory_leaks",
    "allocations",
    "deallocations",
    "memory_snapshots",
    "gpu_memory_usage",
    "gpu_utilization",
    "cuda_events",
    "io_operations",
    "file_operations",
    "network_operations",
    "call_counts",
    "call_frequencies",
    "bottlenecks",
    "recommendations",
)


class Sections(dict):  # type: ignore[type-arg]
    """A plain dictionary by section that knows other names of its sections."""

    def __init__(self, values: dict[str, Any], aliases: dict[str, str]) -> None:
        """Take the values, and names under which they are found, too."""
        super().__init__(values)
        self._aliases = aliases

    def __missing__(self, name: str) -> Any:
        """Look for a section by its other name."""
        other = self._aliases.get(name)
        if other is None or other not in self:
            raise KeyError(name)
        return self[other]


class ProfilerMetrics:
    """The numbers of a profiler, made anew whenever they are asked for, also while it records.

    Times are seconds and memory is MB (1 048 576 bytes). What is not tracked, or not there (a GPU),
    is an empty dictionary.
    """

    def __init__(
        self,
        recorder: Recorder,
        watching: Watching,
        judge: Callable[[], tuple[list[dict[str, Any]], list[str]]],
    ) -> None:
        """Take where numbers come from, and who finds bottlenecks in them."""
        self._recorder, self._watching, self._judge = recorder, watching, judge
        self._operations: dict[str, dict[str, dict[str, float]]] = {}

    # --- Times ---------------------------------------------------------------------------

    def rows(self) -> list[dict[str, Any]]:
        """Return the native rows, longest total first; those never entered are left out."""
        return [dict(row) for row in self._recorder.native.rows() if row["calls"]]

    def paths(self) -> list[dict[str, Any]]:
        """Return the native rows by call path."""
        return [dict(row) for row in self._recorder.native.paths() if row["calls"]]

    def _by(self, value: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        found = {row["name"]: value(row) for row in self.rows()}
        return Sections(found, self._recorder.aliases)

    def _named(self, values: dict[str, Any]) -> dict[str, Any]:
        return Sections(values, self._recorder.aliases)

    @property
    def execution_times(self) -> dict[str, list[float]]:
        """Seconds of each call, the newest 100 000 of a section."""
        native = self._recorder.native
        return self._by(lambda row: [float(value) for value in native.values(row["name"])])

    @property
    def total_times(self) -> dict[str, float]:
        """Seconds of all calls together, exact."""
        return self._by(lambda row: row["total_ns"] / 1e9)

    @property
    def average_times(self) -> dict[str, float]:
        """Mean seconds of a call, exact."""
        return self._by(lambda row: row["mean_ns"] / 1e9)

    @property
    def min_times(self) -> dict[str, float]:
        """Seconds of the shortest call."""
        return self._by(lambda row: row["min_ns"] / 1e9)

    @property
    def max_times(self) -> dict[str, float]:
        """Seconds of the longest call."""
        return self._by(lambda row: row["max_ns"] / 1e9)

    @property
    def call_counts(self) -> dict[str, int]:
        """How often each section was called, exact."""
        return self._by(lambda row: int(row["calls"]))

    @property
    def call_frequencies(self) -> dict[str, float]:
        """Calls a second since the first use of the profiler."""
        elapsed = self._recorder.native.elapsed_s
        return self._by(lambda row: row["calls"] / elapsed) if elapsed else {}

    # --- Memory --------------------------------------------------------------------------

    @property
    def memory_usage(self) -> dict[str, list[float]]:
        """MB that the process grew by in each call."""
        if not self._recorder.config.is_on("track_memory"):
            return {}
        native = self._recorder.native
        found = self._by(lambda row: [value / MIB for value in native.memory_values(row["name"])])
        return self._named({name: values for name, values in found.items() if values})

    @property
    def peak_memory(self) -> dict[str, float]:
        """MB that the process grew by at most while the section was open."""
        if not self._recorder.config.is_on("track_memory"):
            return {}
        found = self._by(lambda row: row["peak_bytes"])
        return self._named({name: v / MIB for name, v in found.items() if v is not None})

    @property
    def memory_leaks(self) -> dict[str, float]:
        """MB that were allocated in a section and not freed in it, over all its calls.

        Less than a page is none: a name that a dictionary learns, a list that grows.
        """
        allocations = self._recorder.allocations
        with self._recorder.lock:
            kept = {} if allocations is None else dict(allocations.kept)
        return self._named({name: value / MIB for name, value in kept.items() if value > _PAGE})

    @property
    def allocations(self) -> dict[str, dict[str, int]]:
        """How many blocks and bytes were allocated in each section."""
        found = self._recorder.allocations
        with self._recorder.lock:
            return self._named(
                {} if found is None else {k: dict(v) for k, v in found.allocated.items()}
            )

    @property
    def deallocations(self) -> dict[str, dict[str, int]]:
        """How many blocks and bytes were freed in each section."""
        found = self._recorder.allocations
        with self._recorder.lock:
            return self._named(
                {} if found is None else {k: dict(v) for k, v in found.freed.items()}
            )

    @property
    def memory_snapshots(self) -> dict[str, dict[str, Any]]:
        """What was in use after each section, which lines allocated it, and how that grew."""
        found = self._recorder.allocations
        with self._recorder.lock:
            return self._named({} if found is None else found.snapshots())

    # --- The GPU -------------------------------------------------------------------------

    @property
    def gpu_memory_usage(self) -> dict[str, list[float]]:
        """MB that torch allocated on the GPU in each call; empty without a GPU."""
        probe = self._recorder.gpu_memory
        with self._recorder.lock:
            values = {} if probe is None else probe.values
            return self._named({name: [v / MIB for v in kept] for name, kept in values.items()})

    @property
    def gpu_utilization(self) -> dict[str, list[float]]:
        """Per cent of the time in which the GPU computed, while each section was open."""
        moments = self._recorder.moments
        series = [] if moments is None else self._watching.whole(".utilisation_percent")
        if moments is None or not series:
            return {}
        with self._recorder.lock:
            spans = moments.spans()
        return self._named(during(spans, series))

    @property
    def cuda_events(self) -> dict[str, list[float]]:
        """Seconds of each call on the device, from pairs of events; empty without a GPU."""
        probe = self._recorder.events
        with self._recorder.lock:
            return self._named({} if probe is None else probe.seconds())

    # --- Files and sockets ---------------------------------------------------------------

    @property
    def io_operations(self) -> dict[str, dict[str, int]]:
        """Bytes and calls of each section, as the kernel counts them for the process."""
        probe = self._recorder.io
        with self._recorder.lock:
            return self._named(
                {} if probe is None else {k: dict(v) for k, v in probe.sections.items()}
            )

    @property
    def file_operations(self) -> dict[str, dict[str, dict[str, float]]]:
        """Calls on files of each section: how many, bytes, seconds."""
        if not self._recorder.config.is_on("track_file_operations"):
            return {}
        return self._named(self._calls(FILE_OPERATIONS))

    @property
    def network_operations(self) -> dict[str, dict[str, dict[str, float]]]:
        """Calls on sockets of each section: how many, bytes, seconds."""
        if not self._recorder.config.is_on("track_network_operations"):
            return {}
        return self._named(self._calls(NETWORK_OPERATIONS))

    def _calls(self, wanted: tuple[str, ...]) -> dict[str, dict[str, dict[str, float]]]:
        self.keep_operations()
        own = {row["name"] for row in self.rows()}
        found: dict[str, dict[str, dict[str, float]]] = {}
        for section, operations in self._operations.items():
            kept = {name: operations[name] for name in wanted if name in operations}
            if section in own and kept:
                found[section] = kept
        return found

    def keep_operations(self) -> None:
        """Read what the recording has of calls; it has no more after its end."""
        session = self._recorder.session
        if session is None or not session.has("io"):
            return
        part = session.document().get("io") or {}
        sums: dict[str, dict[str, dict[str, float]]] = {}
        for row in part.get("sections", ()):
            if row["section"] is None:
                continue
            into = sums.setdefault(row["section"], {})
            for name, numbers in row["operations"].items():
                one = into.setdefault(name, {"count": 0, "bytes": 0, "time": 0.0})
                one["count"] += numbers["calls"]
                one["bytes"] += numbers["bytes"]
                one["time"] += numbers["ms"] / 1e3
        self._operations = sums

    # --- What follows from it ------------------------------------------------------------

    @property
    def bottlenecks(self) -> list[dict[str, Any]]:
        """What is too slow or too large, the worst first."""
        return self._judge()[0]

    @property
    def recommendations(self) -> list[str]:
        """What to change, the largest gain first."""
        return self._judge()[1]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {name: getattr(self, name) for name in NAMES}

    def __repr__(self) -> str:
        """Show everything, a line each."""
        lines = [f"  {name}={value!r}" for name, value in self.to_dict().items()]
        return "ProfilerMetrics(\n" + ",\n".join(lines) + "\n)"
