"""Names that mean something, and calls whose begin and end do."""

from __future__ import annotations

import functools
import inspect
import re
from types import FunctionType

from stepwatch.compat._names import safe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_EPOCH = re.compile(r"epoch[\W_]*(\d+)$", re.IGNORECASE)
_DIGITS = frozenset("0123456789")


def epoch_file(name: str) -> str:
    """Return how the file of an epoch begins: ``val_epoch_3`` does not replace ``epoch_3``."""
    found = _EPOCH.match(name)
    return f"epoch_{int(found[1])}" if found else safe(name)


def epoch_of(name: str) -> int | None:
    """Return the number at the end of an epoch's name, None where it is no epoch."""
    if name[-1:] not in _DIGITS:
        return None
    found = _EPOCH.search(name)
    return int(found[1]) if found else None


def bare_name(target: Any) -> str:
    """Return the name of a function, also of one in a staticmethod or property."""
    for _ in range(8):
        name = getattr(target, "__name__", None)
        if isinstance(name, str):
            return name
        target = getattr(target, "__func__", None) or getattr(target, "fget", target)
    return type(target).__name__


def is_around(function: Any) -> bool:
    """Tell whether ``around`` made it."""
    function = getattr(function, "__func__", function)
    if type(function) is not FunctionType:
        return False
    made, _ = function.__dict__.get("__stepwatch_around__", (None, None))
    return made is function


def around(function: Any, begins: Callable[[], None], ends: Callable[[], None]) -> Any:
    """Return the function with something done before and after each call, whatever happens."""
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(around(function.__func__, begins, ends))
    made: Any = functools.wraps(function)(_wrapper(function, begins, ends))
    # Decorators that come later look through it: what is timed inside is timed.
    made.__stepwatch_around__ = (made, function)
    return made


def _wrapper(function: Any, begins: Callable[[], None], ends: Callable[[], None]) -> Any:
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        begins()
        try:
            return await function(*args, **kwargs)
        finally:
            ends()

    def generator(*args: Any, **kwargs: Any) -> Any:
        begins()
        try:
            return (yield from function(*args, **kwargs))
        finally:
            ends()

    def plain(*args: Any, **kwargs: Any) -> Any:
        begins()
        try:
            return function(*args, **kwargs)
        finally:
            ends()

    if inspect.iscoroutinefunction(function):
        return coroutine
    return generator if inspect.isgeneratorfunction(function) else plain
