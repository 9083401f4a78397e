"""A window of torch's profiler: while it is open, and the clocks at both ends.

There are two of them. The one of ``torch.profiler`` sees devices and tells the types of inputs; to
start and to stop it takes a millisecond and more. The plain one that autograd had before knows the
host alone and takes a few microseconds.
"""

from __future__ import annotations

import json
import os
import threading
import time

from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The profiler writes lines of its own to stderr; this says how grave they must be.
_LOG_LEVEL = "KINETO_LOG_LEVEL"


def open_one(
    torch: Any,
    *,
    host: bool = True,
    device: bool = True,
    shapes: bool = True,
    memory: bool = False,
    brief: bool = False,
) -> Window:
    """Open a window; ``brief``: that it costs little counts for more than the types of inputs."""
    there = device and _has_device(torch)
    if brief and not there and _Plain.is_there(torch):
        return _Plain(torch, shapes, memory)
    return _Kineto(torch, host or not there, there, shapes, memory)


def starts_at_once(torch: Any, brief: bool) -> bool:
    """Tell whether a window sees everything from the moment on when it is opened."""
    return brief and not _has_device(torch) and _Plain.is_there(torch)


def _has_device(torch: Any) -> bool:
    cuda = getattr(torch, "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


class Window:
    """What is the same for both."""

    def __init__(self, torch: Any, memory: bool) -> None:
        """Open nothing yet."""
        self._torch = torch
        self.memory = memory
        self.first: int | None = None  # step that counts
        self.seconds = 0.0
        self.tid = threading.get_native_id()
        self.begin = self.end = (0, 0)

    def keep_from(self, number: int) -> None:
        """From here on what is seen counts."""
        self.first = number
        self.begin = self.end = _clocks()

    def close(self) -> Any:
        """Close it, and return what it saw; None where it was closed by somebody else."""
        raise NotImplementedError

    def tell_devices(self) -> None:
        """Put into the trace what the devices are that the program uses."""

    def _ends(self) -> None:
        self.end = _clocks()
        self.seconds = (self.end[1] - self.begin[1]) / 1e9

    def ticks(self, ns: int) -> int:
        """Convert the profiler's time, which is that of the system clock, to ticks."""
        (ticks, since), (later, until) = self.begin, self.end
        return ticks + (ns - since) * (later - ticks) // max(1, until - since)


class _Kineto(Window):
    def __init__(self, torch: Any, host: bool, device: bool, shapes: bool, memory: bool) -> None:
        super().__init__(torch, memory)
        profiler = torch.autograd.profiler
        self.device = "cuda" if device else None
        profile = profiler.profile(
            use_cpu=host,
            use_device=self.device,
            record_shapes=shapes,
            profile_memory=memory,
            with_flops=shapes,
            use_kineto=True,
        )
        # Not through the object's own methods, which tell everybody that a profiler is on: compiled
        # functions would be compiled again for it.
        with _Quiet():
            profiler._prepare_profiler(
                profile.config(create_trace_id=True), profile.kineto_activities
            )
            profiler._enable_profiler(profile.config(), profile.kineto_activities)
        self._disable = profiler._disable_profiler
        self.begin = self.end = _clocks()

    def close(self) -> Any:
        if self.device is not None:
            # What was launched in the window belongs to it.
            self._torch._C._cuda_synchronize()
        self._ends()
        with _Quiet():
            return self._disable()

    def tell_devices(self) -> None:
        if self.device is None:
            return
        cuda = self._torch.cuda
        for number in range(min(cuda.device_count(), 64)):
            _core.fact(f"torch.device.{number}", _properties(number, cuda))


# What torch calls a property, and what Kineto's files do.
_PROPERTIES = {
    "name": "name",
    "total_memory": "totalGlobalMem",
    "major": "computeMajor",
    "minor": "computeMinor",
    "max_threads_per_block": "maxThreadsPerBlock",
    "max_threads_per_multi_processor": "maxThreadsPerMultiprocessor",
    "regs_per_multiprocessor": "regsPerMultiprocessor",
    "warp_size": "warpSize",
    "shared_memory_per_block": "sharedMemPerBlock",
    "shared_memory_per_block_optin": "sharedMemPerBlockOptin",
    "shared_memory_per_multiprocessor": "sharedMemPerMultiprocessor",
    "multi_processor_count": "numSms",
}


def _properties(number: int, cuda: Any) -> str:
    """Return them as a JSON object."""
    found = cuda.get_device_properties(number)
    known = {ours: getattr(found, name, None) for name, ours in _PROPERTIES.items()}
    told = {key: value for key, value in known.items() if isinstance(value, (int, str))}
    return json.dumps({"id": number, **told})


class _Plain(Window):
    _configs: dict[tuple[bool, bool], Any] = {}  # noqa: RUF012

    def __init__(self, torch: Any, shapes: bool, memory: bool) -> None:
        super().__init__(torch, memory)
        autograd = torch._C._autograd
        config = self._configs.get((shapes, memory))
        if config is None:
            kinds = torch._C._profiler
            config = self._configs[shapes, memory] = kinds.ProfilerConfig(
                kinds.ProfilerState.CPU,
                shapes,
                memory,
                False,  # stacks
                shapes,  # floating-point operations
                False,  # modules
                kinds._ExperimentalConfig(),
            )
        self._disable: Callable[[], Any] = autograd._disable_profiler_legacy
        autograd._enable_profiler_legacy(config)
        self.begin = self.end = _clocks()

    @staticmethod
    def is_there(torch: Any) -> bool:
        autograd = torch._C._autograd
        names = ("_enable_profiler_legacy", "_disable_profiler_legacy")
        return all(hasattr(autograd, name) for name in names) and hasattr(
            torch._C._profiler, "_ExperimentalConfig"
        )

    def close(self) -> Any:
        self._ends()
        if not self._torch._C._autograd._profiler_enabled():
            return None
        return self._disable()


def _clocks() -> tuple[int, int]:
    """Read our clock and the system's at one moment, the best of a few."""
    best: tuple[int, int, int] | None = None
    for _ in range(5):
        before = _core.now()
        ns = time.time_ns()
        after = _core.now()
        if best is None or after - before < best[0]:
            best = (after - before, (before + after) // 2, ns)
    assert best is not None
    return best[1:]


class _Quiet:
    """While the profiler starts it reads from the environment what it may say."""

    def __enter__(self) -> None:
        self._ours = _LOG_LEVEL not in os.environ
        if self._ours:
            os.environ[_LOG_LEVEL] = "99"

    def __exit__(self, *_: object) -> None:
        if self._ours:
            os.environ.pop(_LOG_LEVEL, None)
