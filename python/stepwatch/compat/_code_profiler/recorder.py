"""What a code profiler writes into: the native profiler, probes, and the recording below them."""

from __future__ import annotations

import sys
import threading

import stepwatch
from stepwatch.compat._code_profiler import probes, session
from stepwatch.compat._code_profiler.sections import PHASES, Section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwatch.compat._code_profiler.config import ProfilerConfig
    from stepwatch.compat._code_profiler.sections import Repeats


class Recorder:
    """The native profiler of one code profiler; everything else begins with its first use."""

    def __init__(self, config: ProfilerConfig) -> None:
        """Take the configuration; it is read when profiling begins."""
        self.config = config
        self.native = stepwatch.Profiler(
            "code_profiler", values=probes.LIMIT, memory=config.is_on("track_memory")
        )
        self.lock = threading.RLock()
        self.probes: list[Any] = []
        self.resident: probes.Resident | None = None
        self.io: probes.Io | None = None
        self.allocations: probes.Allocations | None = None
        self.gpu_memory: probes.GpuMemory | None = None
        self.events: probes.CudaEvents | None = None
        self.moments: probes.Moments | None = None
        self.session: session.Session | None = None
        self.said_slow: Callable[[str, float], None] | None = None
        self.repeats: dict[str, Repeats] = {}
        self.aliases: dict[str, str] = {}
        self.open_now = 0  # Sections; threads may miscount it by a little.
        self.changes = 0  # How often something was recorded; reports remember it.
        self.on = config.is_on("enable_profiling")
        self.watches_gpu = False  # The monitor runs for this profiler's sections.
        self._begun = False

    def begin_use(self) -> bool:
        """Tell whether profiling is on; what it needs begins with the first call."""
        if self.on and not self._begun:
            with self.lock:
                if not self._begun:
                    self._begin()
        return self.on

    def _begin(self) -> None:
        self._begun = True
        config = self.config
        self.session = session.acquire(self.wanted())
        if config.is_on("track_memory"):
            self.resident = self._add(probes.Resident())
        if config.is_on("track_io"):
            self.io = self._add(probes.Io())
        if config.is_on("track_gpu"):
            if config.is_on("track_gpu_memory"):
                self.gpu_memory = self._add(probes.GpuMemory())
            if config.is_on("track_cuda_events"):
                self.events = self._add(probes.CudaEvents())
            if config.is_on("track_gpu_utilization"):
                self.moments = self._add(probes.Moments())
                self._watch_gpu()
        kinds = [
            config.is_on(name)
            for name in ("track_allocations", "track_deallocations", "memory_snapshots")
        ]
        if any(kinds):  # Last, so that what the others allocate is not counted.
            self.allocations = self._add(probes.Allocations(*kinds))

    def _watch_gpu(self) -> None:
        """Have the monitor look while sections are open, where there is a GPU."""
        torch: Any = sys.modules.get("torch")
        wanted = self.config.is_on("enable_performance_monitoring")
        if wanted and torch is not None and torch.cuda.is_available():
            running = stepwatch.monitor.running
            self.watches_gpu = stepwatch.monitor.start(self.config.monitor_interval) and not running

    def _add(self, probe: Any) -> Any:
        self.probes.append(probe)
        return probe

    def wanted(self) -> dict[str, Any]:
        """Return the options of the recording that the configuration asks for."""
        on = self.config.is_on
        return {
            "io": on("track_file_operations") or on("track_network_operations"),
            "gpu": "auto" if on("track_gpu") else "off",
            "sampler_hz": 100 if self.config.profile_level == "comprehensive" else 0,
        }

    def open(self, name: str, category: str = "general") -> Section:
        """Return a section to be entered."""
        return Section(self, name, category)

    def section(self, name: str, category: str) -> Any:
        """Return the native section."""
        phase = PHASES.get(category)
        return self.native.section(name, category=category, phase=phase)

    def add(self, name: str, seconds: float, count: int = 1, category: str = "general") -> None:
        """Take a measurement from elsewhere."""
        self.native.section(name, category=category, phase=PHASES.get(category))
        self.native.add(name, seconds, count)
        if self.resident is not None:
            self.resident.look()
        self.changes += 1

    def alias(self, other: str, name: str) -> None:
        """Let a section be found by another name, too."""
        if other != name:
            self.aliases.setdefault(other, name)

    def close(self) -> None:
        """End what was begun; the numbers stay."""
        for probe in reversed(self.probes):
            probe.close()
        self.probes = []
        self.on = False
        if self.session is not None:
            session.release(self.session)
            self.session = None
