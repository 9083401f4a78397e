"""What the adapters of frameworks with a training loop of their own share."""

from __future__ import annotations

from inspect import CO_VARARGS, CO_VARKEYWORDS

from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwatch import section

# Rank among the sources of steps; see python/ext/training.h.
FRAMEWORK = 4


def takes(function: Callable[..., Any], *names: str) -> bool:
    """Tell whether a function takes these arguments and no others.

    What stands for it then need not pack and unpack them, which takes longer than all else there.
    """
    code = getattr(function, "__code__", None)
    flags = getattr(code, "co_flags", 0)
    return (
        code is not None
        and code.co_varnames[: code.co_argcount] == names
        and not code.co_kwonlyargcount
        and not flags & (CO_VARARGS | CO_VARKEYWORDS)
    )


def inside(around: section) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return what makes of a function one that runs inside the section, for ``_patch.replace``."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def function(self: Any, *args: Any, **kwargs: Any) -> Any:
            with around:
                return original(self, *args, **kwargs)

        return function

    return make


def epoch(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that is one pass of its object over the batches, which owns the steps."""

    def function(self: Any, *args: Any, **kwargs: Any) -> Any:
        _core.train_epoch(self)
        complete = False
        try:
            result = original(self, *args, **kwargs)
            complete = True
            return result
        finally:
            _core.train_step_end(FRAMEWORK, self, complete)

    return function
