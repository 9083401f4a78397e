"""Tell several watchers when a step begins; the recorder itself tells one."""

from __future__ import annotations

from stepwatch import _core
from stepwatch.integrations import _notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_watchers: list[tuple[Callable[[int], object], int]] = []


def watch(function: Callable[[int], object], every: int = 1) -> None:
    """Call the function with the number of each step that begins, or of one step in ``every``."""
    # Not by identity: a method is another object each time it is asked for.
    if all(known != function for known, _ in _watchers):
        _watchers.append((function, every))
        _listen()


def _listen() -> None:
    common = 0
    for _, each in _watchers:
        while each:  # Euclid; the program may never import what has a function for it.
            common, each = each, common % each
    if common:
        _core.on_step(_tell, common)
    else:
        _core.on_step(None)


def forget(function: Callable[[int], object]) -> None:
    """Call the function no more."""
    _watchers[:] = [entry for entry in _watchers if entry[0] != function]
    _listen()


def _tell(number: int) -> None:
    for function, every in tuple(_watchers):
        if number % every == 0:
            try:
                function(number)
            except Exception as error:
                forget(function)
                name = f"{function.__module__}.{function.__qualname__}"
                _notes.note_once(f"{name} failed at a step: {type(error).__name__}: {error}")
                return
