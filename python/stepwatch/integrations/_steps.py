"""Tell several watchers when a step begins; the recorder itself tells one."""

from __future__ import annotations

from stepwatch import _core
from stepwatch.integrations import _notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LATER = 1 << 62


class _Watcher:
    """Who is told, of one step in how many, and the first step that it wants to hear of."""

    def __init__(self, function: Callable[[int], object], every: int) -> None:
        self.function = function
        self.every = every
        self.after = 0


_watchers: list[_Watcher] = []
_newest = 0  # of the steps that somebody was told of


def watch(function: Callable[[int], object], every: int = 1) -> None:
    """Call the function with the number of each step that begins, or of one step in ``every``.

    Where it returns a number it is not called before that step.
    """
    # Not by identity: a method is another object each time it is asked for.
    if all(known.function != function for known in _watchers):
        _watchers.append(_Watcher(function, every))
        _listen()


def _listen() -> None:
    common, after = 0, _LATER
    for watcher in _watchers:
        after = min(after, watcher.after)
        each = watcher.every
        while each:  # Euclid; the program may never import what has a function for it.
            common, each = each, common % each
    if common:
        _core.on_step(_tell, common, after)
    else:
        _core.on_step(None)


def forget(function: Callable[[int], object]) -> None:
    """Call the function no more."""
    _watchers[:] = [known for known in _watchers if known.function != function]
    _listen()


def _tell(number: int) -> None:
    global _newest
    anew = number < _newest  # Another recording, or another thread: its steps have other numbers.
    _newest = number
    changed = False
    for watcher in tuple(_watchers):
        if anew:
            watcher.after = 0
        if number % watcher.every == 0 and number >= watcher.after:
            function = watcher.function
            try:
                wanted = function(number)
            except Exception as error:
                forget(function)
                name = f"{function.__module__}.{function.__qualname__}"
                _notes.note_once(f"{name} failed at a step: {type(error).__name__}: {error}")
                return
            if type(wanted) is int and wanted > number + 1:
                watcher.after, changed = wanted, True
    if changed:
        _listen()
