"""What the rules look at: everything that a profiler has measured, in one place."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field

from stepwatch import _core
from stepwatch.compat._code_profiler.probes import MIB, cuda

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stepwatch.compat._code_profiler.metrics import ProfilerMetrics
    from stepwatch.compat._code_profiler.recorder import Recorder


@dataclass
class Facts:
    """Numbers; None and empty mean that nothing is known."""

    cores: float = 1.0
    gpu: bool = False  # There is one that torch can use.
    tracks_memory: bool = True
    tracks_gpu: bool = True
    loaders: list[dict[str, Any]] = field(default_factory=list)
    trainings: list[dict[str, Any]] = field(default_factory=list)
    sections: list[dict[str, Any]] = field(default_factory=list)  # Native rows.
    total_s: float = 0.0  # Since the profiler was first used.
    gc_s: float = 0.0  # Of it, pauses of the garbage collector.
    repeats: dict[str, float] = field(default_factory=dict)  # Share of calls with known arguments.
    memory_share: float | None = None  # Of the machine's memory, at most.
    memory_mb: float | None = None
    cpu_share: float | None = None  # Of the usable cores, on the average.
    gpu_utilization: float | None = None  # Per cent, on the average.
    gpu_memory_share: float | None = None  # At most.
    gpu_reserved_bytes: int | None = None
    gpu_allocated_bytes: int | None = None
    batch_sizes: dict[str, Any] | None = None  # Of a sweep: rows, best, fixed_share.
    findings: list[dict[str, Any]] = field(default_factory=list)  # Of the recording.

    @property
    def compute_s(self) -> float | None:
        """Seconds that a batch takes in training, without waiting for it; None: not known."""
        if self.trainings:
            return float(self.trainings[-1]["avg_total_time"])
        return None


def gather(
    recorder: Recorder, metrics: ProfilerMetrics, data: dict[str, Any], known: dict[str, Any]
) -> Facts:
    """Put together what there is; ``known`` is what profiler methods left behind."""
    config = recorder.config
    torch: Any = sys.modules.get("torch")
    facts = Facts(
        cores=_core.cpus_usable(),
        gpu=torch is not None and bool(torch.cuda.is_available()),
        tracks_memory=config.is_on("track_memory"),
        tracks_gpu=config.is_on("track_gpu") and config.is_on("enable_gpu_profiling"),
        sections=metrics.rows(),
        total_s=recorder.native.elapsed_s or 0.0,
        repeats={name: each.share for name, each in list(recorder.repeats.items())},
        **known,
    )
    total = _memory_total()
    seen = data["memory_usage"] or [_core.resident([0]) / MIB]
    facts.memory_mb = max(seen)
    if total:
        facts.memory_share = max(seen) * MIB / total
    if data["cpu_usage"]:
        facts.cpu_share = _mean(data["cpu_usage"]) / 100 / facts.cores
    if data["gpu_utilization"]:
        facts.gpu_utilization = _mean(data["gpu_utilization"])
    device = cuda()
    if device is not None:
        free, all_of_it = device.mem_get_info()
        used = max([*data["gpu_memory_usage"], (all_of_it - free) / MIB])
        facts.gpu_memory_share = used * MIB / all_of_it
        facts.gpu_reserved_bytes = int(device.memory_reserved())
        facts.gpu_allocated_bytes = int(device.memory_allocated())
    return facts


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _memory_total() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError):
        return None
