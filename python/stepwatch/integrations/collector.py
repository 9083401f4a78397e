"""Pauses of Python's garbage collector."""

from __future__ import annotations

import gc

from stepwatch import _core
from stepwatch.integrations import _steps

# A program may clear gc.callbacks, or end a step with it changed; this often it is looked at.
_STEPS_BETWEEN_LOOKS = 64


def install(_: object = None) -> None:
    """Have the collector tell us. The entry in ``gc.callbacks`` is one C function, the last."""
    _look(0)
    _steps.watch(_look, _STEPS_BETWEEN_LOOKS)


def remove() -> None:
    """Take the entry away."""
    _steps.forget(_look)
    if _core.collector in gc.callbacks:
        gc.callbacks.remove(_core.collector)


def _look(_: int) -> None:
    if _core.collector not in gc.callbacks:
        gc.callbacks.append(_core.collector)
