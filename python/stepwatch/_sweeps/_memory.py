"""The memory that training steps take, on a GPU or on the host."""

from __future__ import annotations

import gc

from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Memory:
    """What steps take of the memory that was free before them: the device's, or this machine's."""

    def __init__(self, torch: Any, device: Any) -> None:
        self._cuda = torch.cuda if device.type == "cuda" else None
        self._device = device
        self.free()
        if self._cuda is not None:
            free, _ = self._cuda.mem_get_info(device)
            self._base = self._cuda.memory_allocated(device)
            # What torch holds and does not use is free, too.
            self.available: int | None = free + self._cuda.memory_reserved(device) - self._base
        else:
            self._base = _core.resident([0])
            self.available = _core.memory_available()
        self._most = 0
        self._peak_before: int | None = None

    def free(self) -> None:
        """Let go of what nobody uses."""
        gc.collect()
        if self._cuda is not None:
            self._cuda.empty_cache()
        else:
            _core.memory_trim()

    def begin(self) -> None:
        """Steps of another size begin."""
        self.free()
        self._most = 0
        if self._cuda is not None:
            self._cuda.reset_peak_memory_stats(self._device)
        else:
            self._peak_before = _core.resident_peak()

    def look(self) -> None:
        """Look how much there is now."""
        if self._cuda is None:
            self._most = max(self._most, _core.resident([0]))

    @property
    def used(self) -> int:
        """The most that there was since the beginning, beyond what was there before all."""
        if self._cuda is not None:
            return int(max(self._cuda.max_memory_allocated(self._device) - self._base, 0))
        peak = _core.resident_peak()
        # The system remembers one peak for ever; it is that of these steps if they raised it.
        if peak is not None and self._peak_before is not None and peak > self._peak_before:
            self._most = max(self._most, peak)
        return int(max(self._most - self._base, 0))

    @property
    def can_fail(self) -> bool:
        """Whether too much is an exception; where it is not, it must not be tried."""
        return self._cuda is not None


def is_out_of_memory(torch: Any, error: BaseException) -> bool:
    kind = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
    if isinstance(error, (kind, MemoryError)):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and (
        "out of memory" in text or "can't allocate memory" in text or "not enough memory" in text
    )
