"""Statistics of torch's allocators of devices, into the recording before it ends."""

from __future__ import annotations

import sys
from typing import Any

from stepwatch import _core

_TABLE = 29  # ALLOCATOR, docs/FORMAT.md


def flush() -> None:
    """Put a row for each device whose allocator torch has used."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return  # torch keeps no statistics of memory of the CPU.
    for device in range(cuda.device_count()):
        stats = cuda.memory_stats(device)
        if stats.get("allocation.all.allocated", 0):
            values = (
                stats.get("allocated_bytes.all.current", 0),
                stats.get("allocated_bytes.all.peak", 0),
                stats.get("reserved_bytes.all.current", 0),
                stats.get("reserved_bytes.all.peak", 0),
                stats.get("num_alloc_retries", 0),
            )
            _core.put_row(0, _TABLE, 0, ("torch.cuda", device), values)
