"""Functions that run the original inside a section."""

from __future__ import annotations

from stepwatch import _core
from stepwatch.integrations import _dynamo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwatch._core import section


def timed(around: section, torch: Any) -> Callable[[Any], Callable[..., Any]]:
    """Return what makes of a function one that runs inside the section, for ``_patch.replace``."""
    traces, compiler = _dynamo.compiling(torch)

    def make(original: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if traces() or compiler._is_compiling_flag:
                return original(*args, **kwargs)
            with around:
                return original(*args, **kwargs)

        return call

    return make


def timed_after_validation(around: section, torch: Any) -> Callable[[Any], Callable[..., Any]]:
    """As above, for what a validation does not do: if there was one, it is over.

    Where a batch is being made it is part of that: many datasets load a file for every sample.
    """
    traces, compiler = _dynamo.compiling(torch)
    resumes, waits = _core.train_resumes, _core.train_waits

    def make(original: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if traces() or compiler._is_compiling_flag:
                return original(*args, **kwargs)
            if waits():
                return original(*args, **kwargs)
            resumes()
            with around:
                return original(*args, **kwargs)

        return call

    return make
