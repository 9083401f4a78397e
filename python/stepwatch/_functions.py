"""Decorating a function with a function profile."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, TypeVar, cast

if TYPE_CHECKING:
    from stepwatch._core import functions

F = TypeVar("F", bound=Callable[..., Any])


def decorate(profile: functions, function: F) -> F:
    """Return ``function`` with ``profile`` running during each of its calls."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with profile:
                return await function(*args, **kwargs)

        return cast(F, coroutine)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        # Between two items the program does other things, and ends them in any order.
        raise TypeError("a function profile cannot decorate a generator: use it in a with block")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with profile:
            return function(*args, **kwargs)

    return cast(F, call)
