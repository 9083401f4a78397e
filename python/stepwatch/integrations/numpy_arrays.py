"""Of which types the arrays are that a loop without a framework computes with.

NumPy makes arrays of 64 bits unless it is told otherwise, and nothing of a recording shows it. So
what the functions around the training loop have at hand is looked through, once: their variables,
and what lists, dicts and objects among these hold. Nothing of the program's own is called.
"""

from __future__ import annotations

import sys
from types import FunctionType, ModuleType

from stepwatch import _core
from stepwatch.integrations import _steps
from stepwatch.integrations._settings import setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_LOOP = 1  # python/ext/training.h
# By then the loop has what it computes with.
_AT_STEP = 16
# A list of more is looked through in part, and no more than so many values in all.
_OF_EACH, _MOST = 64, 4096
_DEPTH = 3
# Elements of an array that is computed with, not looked up in.
_LEAST = 1000
_NOT_DATA = (ModuleType, type, FunctionType, str, bytes, int, float)


def watch() -> None:
    """Look once, when steps are being made."""
    _steps.watch(_look, _AT_STEP)


def forget() -> None:
    """Do not look."""
    _steps.forget(_look)


def _look(number: int) -> None:
    if number == 0:
        return
    _steps.forget(_look)
    numpy = sys.modules.get("numpy")
    if numpy is None or _core.train_now()[0] != _LOOP:
        return
    elements: dict[str, int] = {}
    for array in _arrays(numpy.ndarray):
        if array.size >= _LEAST and array.dtype.kind == "f":
            kind = array.dtype.name
            elements[kind] = elements.get(kind, 0) + array.size
    for kind, count in elements.items():
        setting("numpy", f"{kind}_elements", count)


def _arrays(kind: type) -> Iterator[Any]:
    """Go through the arrays that functions on the stack can reach, each once."""
    seen: set[int] = set()
    waiting: list[tuple[Any, int]] = []
    frame = sys._getframe(1)
    while frame is not None:
        waiting.extend((value, _DEPTH) for value in list(frame.f_locals.values()))
        frame = frame.f_back  # type: ignore[assignment]
    while waiting and len(seen) < _MOST:
        value, depth = waiting.pop()
        # Not isinstance(), which asks objects what they say they are.
        own = type(value)
        if id(value) in seen or issubclass(own, _NOT_DATA):
            continue
        seen.add(id(value))
        if issubclass(own, kind):
            if own.__module__.partition(".")[0] == "numpy":
                yield value
        elif depth:
            waiting.extend((one, depth - 1) for one in _inside(value))


def _inside(value: Any) -> list[Any]:
    if type(value) in (list, tuple):
        return list(value[:_OF_EACH])
    if type(value) is dict:
        return list(value.values())[:_OF_EACH]
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    return list(own.values())[:_OF_EACH] if type(own) is dict else []
