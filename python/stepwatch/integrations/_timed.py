"""Functions that run the original inside a section."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwatch._core import section


def timed(around: section, is_compiling: Callable[[], bool]) -> Callable[[Any], Callable[..., Any]]:
    """Return what makes of a function one that runs inside the section, for ``_patch.replace``."""

    def make(original: Any) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(*args, **kwargs)
            with around:
                return original(*args, **kwargs)

        return call

    return make
