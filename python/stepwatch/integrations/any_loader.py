"""Loaders that are not torch's own: whatever gives batches one after the other.

Where such a loader goes through one of torch's within, the outer one gives the steps: it may ask
for a batch before it gives the one before (accelerate's do, to know which is the last).
"""

from __future__ import annotations

import weakref
from functools import partial
from inspect import isgenerator

from stepwatch import _core
from stepwatch.integrations import _notes, _patch, loader_rows, torch_data, torch_transforms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

_LOADER = 3  # The source of steps that a loader is.
_WAIT, _FIRST = 8, 12
_now = _core.now
_known: dict[int, Foreign] = {}

# Classes whose __iter__ gives the batches that a program trains with, by where they are. Each of
# these modules is waited for in stepwatch.integrations.
_CLASSES: dict[str, tuple[str, ...]] = {
    "accelerate.data_loader": ("DataLoaderShard", "DataLoaderDispatcher", "SkipDataLoader"),
    "webdataset": ("WebLoader",),
    "ffcv.loader": ("Loader",),
    "torchdata.nodes": ("Loader",),
    "nvidia.dali.plugin.pytorch": ("DALIGenericIterator",),
    "grain": ("DataLoader",),
}


def install(module: Any) -> None:
    """Watch the loaders of a module that has been imported."""
    if _core.option("loader") in ("false", "off", "0"):
        return
    for name in _CLASSES.get(module.__name__, ()):
        kind = getattr(module, name, None)
        if not isinstance(kind, type) or not watch(kind):
            _notes.note_once(f"{module.__name__} has no {name} that could be watched")


def remove() -> None:
    """Forget what is known."""
    _known.clear()


def watch(kind: type) -> bool:
    """Let passes over objects of this class give steps; tell whether it can be gone through."""
    return _patch.replace(kind, "__iter__", _iter)


def _iter(original: Callable[..., Any]) -> Callable[..., Any]:
    def __iter__(self: Any) -> Any:  # noqa: N807
        iterator = original(self)
        try:
            return _watched(iterator, self)
        except Exception as error:
            _notes.note_once(f"a {type(self).__name__} is not watched: {error}")
            return iterator

    return __iter__


def _watched(iterator: Any, loader: Any) -> Any:
    """Return what goes through the batches in the iterator's place."""
    if iterator is loader:
        # It goes through itself, and is asked for what else it can do, too.
        _patch.replace(type(loader), "__next__", _next)
        Pass(loader)
        return iterator
    current = Pass(loader)
    return _batches(iterator, current) if isgenerator(iterator) else Batches(iterator, current)


class Foreign:
    """What is known of a loader that is not torch's."""

    def __init__(self, loader: Any) -> None:
        self.row = loader_rows.Row(loader, foreign=True)
        self.wait = loader_rows.stage(self.row.name, None, _WAIT, "wait")
        self.first = loader_rows.stage(self.row.name, None, _FIRST, "first")
        self.current: Pass | None = None
        try:
            self.weak: Any = weakref.ref(loader, loader_rows.forget(_known, id(loader)))
        except TypeError:
            self.weak = None


def _foreign(loader: Any) -> Foreign:
    found = _known.get(id(loader))
    if found is None or (found.weak is not None and found.weak() is not loader):
        found = _known[id(loader)] = Foreign(loader)
    return found


def _inner(loader: Any) -> Any:
    """Return the loader of torch's that this one goes through, if it is known where that is."""
    attributes = torch_transforms.Attributes(loader)
    inner = attributes.get("base_dataloader")
    if inner is None:
        stages = attributes.get("pipeline")  # webdataset's: the first gives, the others change.
        first = stages[0] if isinstance(stages, list) and stages else None
        if torch_data.torch is not None and isinstance(
            first, torch_data.torch.utils.data.DataLoader
        ):
            inner = first
    return inner


class Pass:
    """One pass over a loader, which may go through one of torch's own."""

    def __init__(self, loader: Any) -> None:
        self.inner = _inner(loader)
        # The one within has a row already, and whoever knows it as one for training is right.
        self.foreign = None if self.inner is not None else _foreign(loader)
        self.group = loader if self.inner is None else self.inner
        self.index = 0
        self.number = next(torch_data.numbers)
        self.epoch = _core.train_epoch(self.group)
        if self.foreign is not None:
            self.foreign.row.begin_pass()
            self.foreign.current = self

    def ask(self, owner: Any, ask: Callable[[], Any]) -> Any:
        """Ask for the next batch on behalf of the owner of this pass."""
        begin = _now()
        before = torch_data.outer(self.group)
        _core.train_wait(_LOADER, owner, self.group, _evaluating())
        try:
            batch = ask()
        except StopIteration:
            _core.train_end(owner)
            raise
        except BaseException:
            _core.train_failed(owner)
            raise
        finally:
            torch_data.outer(before)
        _core.train_got(owner)
        if self.foreign is not None:
            self._count(self.foreign, begin)
        else:
            _core.quick_begin(owner)
        return batch

    def _count(self, foreign: Foreign, begin: int) -> None:
        end = foreign.wait.add(begin)
        if self.index == 0:
            foreign.first.add(begin, end)
        _core.put_batch(
            foreign.row.name, begin, end, 0, 0, 0, 0, 0, 0, 0,
            self.number << 32 | self.index, self.epoch, self.index, None, 0,
        )  # fmt: skip
        self.index += 1


def _evaluating() -> bool:
    return torch_data.torch is not None and torch_data.evaluating()


def _batches(inner: Generator[Any, Any, Any], current: Pass) -> Generator[Any, Any, Any]:
    """Go through a generator's batches as a generator."""
    wait, got = _core.quick_wait, _core.quick_got
    try:
        while True:
            if wait(inner):
                try:
                    batch = next(inner)
                except StopIteration:
                    _core.train_end(inner)
                    return
                except BaseException:
                    _core.train_failed(inner)
                    raise
                got(inner)
            else:
                try:
                    batch = current.ask(inner, inner.__next__)
                except StopIteration:
                    return
            yield batch
    finally:
        inner.close()


class Batches:
    """Goes through an iterator's batches; everything else is as the iterator has it."""

    def __init__(self, inner: Any, current: Pass) -> None:
        self._inner, self._current = inner, current

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Any:
        return self._current.ask(self, self._inner.__next__)

    def __length_hint__(self) -> int:
        from operator import length_hint

        return length_hint(self._inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _next(original: Callable[..., Any]) -> Callable[..., Any]:
    def __next__(self: Any) -> Any:  # noqa: N807
        foreign = _known.get(id(self))
        current = None if foreign is None else foreign.current
        if current is None:
            return original(self)
        return current.ask(self, partial(original, self))

    return __next__
