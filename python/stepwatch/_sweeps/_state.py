"""What a measurement must leave as it was: random states, and the steps of a recording."""

from __future__ import annotations

import random
import sys
from contextlib import contextmanager

from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


def torch_or_none() -> Any:
    """Return torch where the program has imported it."""
    return sys.modules.get("torch")


def need_torch(name: str) -> Any:
    """Return torch, or say in one sentence that it is missing."""
    try:
        import torch
    except ImportError as error:
        raise RuntimeError(
            f"stepwatch.{name} needs torch, which cannot be imported here: {error}"
        ) from error
    return torch


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number that is large enough, or say what is wrong with it."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    number = int(value.__index__())
    if number < least:
        raise ValueError(f"{name} must be at least {least}, not {number}")
    return number


def check_seconds(name: str, value: Any) -> float:
    """Return a time that is more than none, or say what is wrong with it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {type(value).__name__}")
    if not value > 0:
        raise ValueError(f"{name} must be more than 0 seconds, not {value}")
    return float(value)


def since(begin: int, end: int) -> float:
    """Return the seconds between two readings of the recorder's clock."""
    return max(end - begin, 0) / _core.ticks_per_second()


def save_random() -> Callable[[], None]:
    """Keep the states of all generators that programs share; return what puts them back."""
    undo: list[Callable[[], None]] = []
    state = random.getstate()
    undo.append(lambda: random.setstate(state))
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        legacy = numpy.random.get_state(legacy=False)
        undo.append(lambda: numpy.random.set_state(legacy))
    torch = torch_or_none()
    if torch is not None and hasattr(torch, "get_rng_state"):
        of_torch = torch.get_rng_state()
        undo.append(lambda: torch.set_rng_state(of_torch))
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            of_cuda = torch.cuda.get_rng_state_all()
            undo.append(lambda: torch.cuda.set_rng_state_all(of_cuda))

    def put_back() -> None:
        for each in undo:
            each()

    return put_back


@contextmanager
def measuring(name: str) -> Iterator[None]:
    """Be one section of a recording and no part of its training; leave random states alone."""
    put_back = save_random()
    _core.train_aside(True)
    try:
        with _core.section(name):
            yield
    finally:
        _core.train_aside(False)
        put_back()


def waiter(torch: Any, device: Any = None) -> Callable[[], None] | None:
    """Return what waits until the device has done all it was asked; None: nothing runs ahead."""
    if torch is None:
        return None
    if device is not None and device.type == "cpu":
        return None
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        cuda = torch.cuda
        return lambda: cuda.synchronize(device)
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None and accelerator.is_available():
        synchronize: Callable[[], None] = accelerator.synchronize
        return synchronize
    return None
