"""Functions that run the original inside a section."""

from __future__ import annotations

from stepwatch import _core
from stepwatch.integrations._stand_in import Hooks, stand_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwatch._core import section


def timed(around: section, torch: Any) -> Callable[[Any], Callable[..., Any]]:
    """Return what makes of a function one that runs inside the section, for ``_patch.replace``."""
    hooks = _hooks(_core.section_enter, around)
    return lambda original: stand_in(original, hooks, torch)


def timed_after_validation(around: section, torch: Any) -> Callable[[Any], Callable[..., Any]]:
    """As above, for what a validation does not do: if there was one, it is over.

    Where a batch is being made it is part of that: many datasets load a file for every sample.
    """
    hooks = _hooks(_core.work_enter, around)
    return lambda original: stand_in(original, hooks, torch)


def _hooks(enter: Callable[[section], section | None], around: section) -> Hooks:
    leave, failed = _core.section_leave, _core.section_failed
    return Hooks(enter, leave, failed, around, rests=_core.section_rests(around))
