"""Sections of a code profiler: the native ones, with what is read besides the clock."""

from __future__ import annotations

import functools
import inspect
import time
from threading import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any

    from stepwatch.compat._code_profiler.recorder import Recorder

# The part of a step that a category is, for recordings.
PHASES: dict[str, Any] = {
    "data_loading": "data_wait",
    "preprocessing": "preprocess",
    "augmentation": "augment",
    "collate": "collate",
    "forward": "forward",
    "loss": "loss",
    "backward": "backward",
    "optimizer": "optimizer",
    "validation": "validation",
    "checkpoint": "checkpoint",
}


class Section:
    """What ``profile_section`` returns: a block, and as a decorator each call of a function.

    One object may be entered again while it is open, and by several threads.
    """

    __slots__ = ("_category", "_open", "_recorder", "name")

    def __init__(self, recorder: Recorder, name: str, category: str) -> None:
        """Take the name; nothing is measured before the block begins."""
        self._recorder, self.name, self._category = recorder, name, category
        # By thread, the newest last: the native section, what probes read, the begin.
        self._open: dict[int, list[tuple[Any, list[Any], float]]] = {}

    def __call__(self, function: Callable[..., Any]) -> Any:
        """Decorate a function."""
        return decorate(self._recorder, function, self.name, self._category)

    def __enter__(self) -> Section:
        """Begin, where profiling is on."""
        recorder = self._recorder
        if recorder.begin_use():
            before = [probe.begin() for probe in recorder.probes]
            inner = recorder.section(self.name, self._category)
            inner.__enter__()
            recorder.open_now += 1
            # The logger hears how long the block took, without what is read around it.
            begin = time.monotonic() if recorder.said_slow is not None else 0.0
            self._open.setdefault(get_ident(), []).append((inner, before, begin))
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End; an exception counts as an error of the section, and passes."""
        mine = self._open.get(get_ident())
        if not mine:
            return
        inner, before, begin = mine.pop()
        recorder = self._recorder
        end = time.monotonic() if recorder.said_slow is not None else 0.0
        inner.__exit__(exc_type, exc, traceback)
        recorder.open_now -= 1
        _end_probes(recorder, self.name, before)
        recorder.changes += 1
        if recorder.said_slow is not None:
            recorder.said_slow(self.name, end - begin)


_END: Any = object()


def batches(recorder: Recorder, loader: Any, name: str, category: str) -> Iterator[Any]:
    """Give the batches of a loader; waiting for each is a call of the section.

    There are as many calls as batches: hearing that there are no more is none.
    """
    if not recorder.begin_use():
        yield from loader
        return
    recorder.section(name, category)
    passing = iter(recorder.native.data(loader, name=name))
    while True:
        before = [probe.begin() for probe in recorder.probes]
        recorder.open_now += 1
        try:
            batch = next(passing, _END)
        finally:
            recorder.open_now -= 1
        if batch is _END:
            return
        _end_probes(recorder, name, before)
        recorder.changes += 1
        yield batch


def _end_probes(recorder: Recorder, name: str, before: list[Any]) -> None:
    if recorder.probes:
        with recorder.lock:
            for probe, begun in zip(reversed(recorder.probes), reversed(before)):
                probe.end(name, begun)


_MOST_CALLS = 5000  # Of which arguments are looked at.
_MOST_KEYS = 1024
_PLAIN = (int, float, str, bytes, bool, type(None))


class Repeats:
    """How often a function was called with arguments that it had before."""

    def __init__(self) -> None:
        self.looked = self.repeated = 0
        self._known: set[Any] = set()

    def look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Look at one call; only plain values are compared."""
        if self.looked >= _MOST_CALLS:
            return
        values = (*args, *kwargs.values())
        if not all(isinstance(value, _PLAIN) for value in values):
            return
        self.looked += 1
        key = (args, tuple(kwargs.items()))
        if key in self._known:
            self.repeated += 1
        elif len(self._known) < _MOST_KEYS:
            self._known.add(key)

    @property
    def share(self) -> float:
        """Of the calls that were looked at."""
        return self.repeated / self.looked if self.looked else 0.0


def decorate(recorder: Recorder, function: Callable[..., Any], name: str, category: str) -> Any:
    """Return the function with each call of it as a section; twice is once."""
    known = getattr(function, "__code_profiler__", None)
    if known == (recorder, name):
        return function
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    if any(kind(function) for kind in kinds):
        wrapper = _switching(recorder, function, recorder.section(name, category)(function))
    else:
        wrapper = _plain(recorder, function, name, category)
    functools.update_wrapper(wrapper, function)
    wrapper.__code_profiler__ = (recorder, name)
    recorder.alias(f"{category}.{getattr(function, '__name__', name)}", name)
    return wrapper


def _plain(recorder: Recorder, function: Callable[..., Any], name: str, category: str) -> Any:
    repeats = recorder.repeats.setdefault(name, Repeats())

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not recorder.on:
            return function(*args, **kwargs)
        repeats.look(args, kwargs)
        with Section(recorder, name, category):
            return function(*args, **kwargs)

    return wrapper


def _switching(recorder: Recorder, function: Callable[..., Any], timed: Callable[..., Any]) -> Any:
    """Choose at each call, so that a coroutine or a generator stays one."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not recorder.begin_use():
            return function(*args, **kwargs)
        recorder.changes += 1
        return timed(*args, **kwargs)

    return wrapper
