"""Batches of any shape: how many samples are in one, how large it is, and where it lies."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_DEPTH = 8  # Nobody nests batches deeper; what refers to itself ends here.


def _parts(batch: Any) -> list[Any] | None:
    """Return what a batch consists of by name; None: it has no names."""
    if isinstance(batch, Mapping):
        return list(batch.values())
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        return [getattr(batch, field.name) for field in dataclasses.fields(batch)]
    return None


def _is_sample(value: Any) -> bool:
    """Tell whether something in a list looks like one sample rather than like one column."""
    return isinstance(value, tuple) or _parts(value) is not None


def _readings(batch: Any, depth: int = 0) -> dict[str, int]:
    """Return how many samples there may be, by the way of counting, the likeliest first."""
    shape = getattr(batch, "shape", None)
    if shape is not None and hasattr(shape, "__len__"):
        return {"shape": int(shape[0])} if len(shape) else {}
    if isinstance(batch, (str, bytes)) or batch is None or depth > _DEPTH:
        return {}
    for name in ("batch_size", "num_graphs"):  # Classes of batches of well-known libraries.
        size = getattr(batch, name, None)
        if isinstance(size, int) and not isinstance(size, bool):
            return {name: size}
    parts = _parts(batch)
    if parts is not None:
        return _first(parts, depth)
    if isinstance(batch, (list, tuple)):
        columns = _first(batch, depth)
        rows = {"rows" if depth == 0 else f"rows {depth}": len(batch)}
        if isinstance(batch, list):
            samples = bool(batch) and all(map(_is_sample, batch))
        else:
            samples = depth > 0  # As zip(*samples) makes them.
        return {**rows, **columns} if samples or not columns else {**columns, **rows}
    if hasattr(batch, "__len__"):
        return {"len": len(batch)}
    own = getattr(batch, "__dict__", None)
    return _first(own.values(), depth) if own else {}


def _first(parts: Iterable[Any], depth: int) -> dict[str, int]:
    for part in parts:
        found = _readings(part, depth + 1)
        if found:
            return found
    return {}


class Sizes:
    """Counts the samples of batches, all in the same way."""

    def __init__(self, expected: int | None = None) -> None:
        """Take how many a batch should have, where that is known: it settles what is meant."""
        self._expected = expected
        self._way: str | None = None

    def of(self, batch: Any) -> int | None:
        """Return how many samples are in the batch; None: that cannot be told."""
        found = _readings(batch)
        if not found:
            return None
        if self._way is None:
            fitting = [way for way, size in found.items() if size == self._expected]
            self._way = fitting[0] if fitting else next(iter(found))
        return found.get(self._way, next(iter(found.values())))


def bytes_of(batch: Any, depth: int = 0) -> int:
    """Return the bytes of the data in a batch: tensors, arrays and texts."""
    size = getattr(batch, "nbytes", None)
    if isinstance(size, int):
        return size
    if isinstance(batch, (bytes, bytearray, str)):
        return len(batch)
    if batch is None or depth > _DEPTH:
        return 0
    parts: Any = _parts(batch)
    if parts is None and isinstance(batch, (list, tuple, set, frozenset)):
        parts = batch
    if parts is None:
        parts = list(getattr(batch, "__dict__", {}).values())
    return sum(bytes_of(part, depth + 1) for part in parts)


def to_device(torch: Any, batch: Any, device: Any) -> Any:
    """Return the batch with its tensors on the device; what is there stays what it is."""
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, tuple):
        moved = [to_device(torch, part, device) for part in batch]
        return type(batch)(*moved) if hasattr(batch, "_fields") else tuple(moved)
    if isinstance(batch, list):
        return [to_device(torch, part, device) for part in batch]
    if type(batch) is dict:
        return {key: to_device(torch, part, device) for key, part in batch.items()}
    if hasattr(batch, "to"):  # Batches of transformers and of many libraries.
        return batch.to(device)
    if isinstance(batch, Mapping):
        return {key: to_device(torch, part, device) for key, part in batch.items()}
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        moved_fields = {
            field.name: to_device(torch, getattr(batch, field.name), device)
            for field in dataclasses.fields(batch)
            if field.init
        }
        return dataclasses.replace(batch, **moved_fields)
    return batch


def repeat(torch: Any, batch: Any, size: int, count: int) -> Any:
    """Return a batch of ``count`` samples out of one of ``size``; None: it has no such axis."""
    if isinstance(batch, torch.Tensor):
        if batch.dim() == 0 or batch.shape[0] != size:
            return None if batch.dim() else batch
        times = -(-count // size)
        return batch.repeat(times, *[1] * (batch.dim() - 1))[:count]
    if isinstance(batch, (list, tuple)):
        parts = [repeat(torch, part, size, count) for part in batch]
        if any(part is None for part in parts):
            return None
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    if isinstance(batch, Mapping):
        found = {key: repeat(torch, part, size, count) for key, part in batch.items()}
        return None if any(part is None for part in found.values()) else found
    return None
