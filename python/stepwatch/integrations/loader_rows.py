"""What is written about a data loader: where it was built, and how it is set."""

from __future__ import annotations

import re
import sys
import weakref
from contextlib import suppress
from itertools import islice
from pathlib import Path

from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

_SITE, _LOADER, _SETTING = 8, 10, 14
_UNKNOWN = 2**64 - 1
_PIN, _PERSISTENT, _DROP_LAST, _SHUFFLED, _ITERABLE, _FOREIGN = 1, 2, 4, 8, 16, 32
_NAN = float("nan")
# Samplers that ask the dataset for its length themselves, so that asking it changes nothing.
_ASKING = ("SequentialSampler", "RandomSampler", "DistributedSampler")

# Who has a name. A loader that is gone leaves it, and its row, to the next one that is built at the
# same place, for programs build their loaders anew for every epoch; and to anyone in the next
# recording.
_names: dict[str, tuple[weakref.ref[Any], Row]] = {}


_stages: dict[tuple[str, int | None, int, str], _core.stage] = {}


def stage(
    loader: str, worker: int | None, kind: int, name: str, section: _core.section | None = None
) -> _core.stage:
    """Return a stage of a loader: the same one for whoever has that name, one after the other."""
    key = (loader, worker, kind, name)
    found = _stages.get(key)
    if found is None:
        found = _stages[key] = _core.stage(loader, worker, kind, name, section)
    return found


class Row:
    """A loader's row of the trace, and what goes with it."""

    def __init__(self, loader: Any, foreign: bool = False) -> None:
        # Others than torch's are seen when they are gone through; where they were built is unknown.
        self.site = None if foreign else _site(loader)
        self.foreign = foreign
        self.recording = _core.recording_number()
        self.passes = 0
        self._written = 0  # in which recording
        self._site_index = 0
        self._handles: dict[str, int] = {}
        dataset = _plain(getattr(loader, "dataset", None))
        self.dataset = "" if dataset is None else _kind(dataset)
        self.kind = _kind(loader)
        self._settings(loader, dataset)
        fallback = f"{self.kind}({self.dataset})" if self.dataset else self.kind
        self.name = self._take_name(loader, _name(self.site, self.kind, fallback))
        if _core.is_recording():
            self.put()

    def _take_name(self, loader: Any, wanted: str) -> str:
        name, number = wanted, 1
        while name in _names:
            owner, row = _names[name]
            gone = owner() is None
            if gone and row.site == self.site and row.dataset == self.dataset:
                self.passes = row.passes if row.recording == self.recording else 0
                if (row.workers, row.batch_size) == (self.workers, self.batch_size):
                    self._handles = row._handles
                break
            if gone and row.recording != self.recording:
                break
            number += 1
            name = f"{wanted} ({number})"
        _names[name] = (weakref.ref(loader), self)
        return name

    def _settings(self, loader: Any, dataset: Any) -> None:
        workers = getattr(loader, "num_workers", 0)
        self.workers = workers if isinstance(workers, int) and workers > 0 else 0
        batch_sampler = getattr(loader, "batch_sampler", None)
        size = getattr(loader, "batch_size", None) or getattr(batch_sampler, "batch_size", None)
        self.batch_size = size if isinstance(size, int) and size > 0 else 0
        self.prefetch = getattr(loader, "prefetch_factor", None) or 0
        sampler = getattr(loader, "sampler", None)
        inner = getattr(batch_sampler, "sampler", None)
        kinds = [type(each).__name__ for each in (sampler, inner) if each is not None]
        shuffled = any(
            "Random" in kind or getattr(each, "shuffle", False) is True
            for kind, each in zip(kinds, (each for each in (sampler, inner) if each is not None))
        )
        # As torch has it; a loader that is not torch's says nothing.
        iterable = getattr(loader, "_dataset_kind", 0) == 1
        self.bits = (
            (_PIN if getattr(loader, "pin_memory", False) else 0)
            | (_PERSISTENT if getattr(loader, "persistent_workers", False) else 0)
            | (_DROP_LAST if getattr(loader, "drop_last", False) else 0)
            | (_SHUFFLED if shuffled else 0)
            | (_ITERABLE if iterable else 0)
            | (_FOREIGN if self.foreign else 0)
        )
        self.samples = _UNKNOWN
        if not iterable and any(kind in _ASKING for kind in kinds):
            with suppress(Exception):
                self.samples = len(dataset)
        self.texts = {
            "sampler": "" if sampler is None or iterable else _kind(sampler),
            "batch_sampler": "" if batch_sampler is None else _kind(batch_sampler),
            "collate": _called(getattr(loader, "collate_fn", None)),
            "worker_init": _called(getattr(loader, "worker_init_fn", None)),
            "start_method": _method(loader) if self.workers else "",
            "class": self.kind,
        }
        timeout = getattr(loader, "timeout", 0)
        self.timeout = float(timeout) if timeout and isinstance(timeout, (int, float)) else 0.0

    def begin_pass(self) -> None:
        recording = _core.recording_number()
        if self.recording != recording:  # Those before were of another.
            self.recording, self.passes = recording, 0
        self.passes += 1
        if self._written == recording:
            self._put_loader()
        else:
            self.put()

    def _put_loader(self) -> None:
        self._put(
            "loader",
            _LOADER,
            (self.name, self.dataset, self.workers, self.batch_size),
            (self.bits, self.prefetch, self.samples, self.passes, self._site_index),
        )

    def put(self) -> None:
        """Write what is known; rows of an earlier recording are made anew."""
        self._written = _core.recording_number()
        self._site_index = 0
        if self.site is not None:
            file, line, function = self.site
            place = self._put("site", _SITE, (1, file, line, self.kind), (function,))
            self._site_index = place + 1
        self._put_loader()
        for what, text in self.texts.items():
            if text:
                self._put(what, _SETTING, (f"loader.{what}", self.name, text), (_NAN,))
        if self.timeout:
            text = f"{self.timeout:g}"
            self._put("timeout", _SETTING, ("loader.timeout", self.name, text), (self.timeout,))

    def _put(self, what: str, table: int, keys: tuple[Any, ...], values: tuple[Any, ...]) -> int:
        handle = self._handles.get(what, 0)
        self._handles[what], index = _core.put_row(handle, table, 0, keys, values)
        return index if index != 0xFFFFFFFF else -1


def _plain(dataset: Any) -> Any:
    """Return the dataset itself, where torch has wrapped a datapipe to send it to workers."""
    if "SerializationWrapper" in type(dataset).__name__:
        return getattr(dataset, "_datapipe", dataset)
    return dataset


def _kind(thing: object) -> str:
    return _local(type(thing).__qualname__)


def _local(name: str) -> str:
    """Leave out within which functions something is defined."""
    return name.rpartition("<locals>.")[2]


def _called(function: Any) -> str:
    if function is None:
        return ""
    name = getattr(function, "__qualname__", None)
    return _local(name) if isinstance(name, str) else _kind(function)


def _method(loader: Any) -> str:
    context = getattr(loader, "multiprocessing_context", None)
    if context is None:
        context = sys.modules.get("multiprocessing")
    try:
        return str(context.get_start_method())  # type: ignore[union-attr]
    except Exception:
        return ""


def _site(loader: Any) -> tuple[str, int, str] | None:
    """Find where the program builds the loader.

    A subclass of the program's own builds it in its constructor; the place where that is called
    says more.
    """
    site = _core.user_site()
    if site is None or not site[2].endswith("__init__"):
        return site
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not _builds(frame, site, loader):
        frame = frame.f_back
    while frame is not None and _builds(frame, None, loader):
        frame = frame.f_back
    if frame is None or "site-packages" in frame.f_code.co_filename:
        return site
    code = frame.f_code
    return code.co_filename, frame.f_lineno, getattr(code, "co_qualname", code.co_name)


def _builds(frame: FrameType, site: tuple[str, int, str] | None, loader: Any) -> bool:
    """Tell whether the frame is a constructor of the loader, at the site where one is given."""
    code = frame.f_code
    if site is not None and (code.co_filename, frame.f_lineno) != site[:2]:
        return False
    if code.co_name != "__init__" or not code.co_varnames:
        return False
    return frame.f_locals.get(code.co_varnames[0]) is loader


# What lines that build loaders call them, by file, line and class: many are built in every epoch.
_called_there: dict[tuple[str, int, str], str | None] = {}
_MOST_LINES = 1024


def _name(site: tuple[str, int, str] | None, kind: str, fallback: str) -> str:
    """Name a loader as the program does, if the line that builds it tells: ``train = Load(…)``."""
    if site is None:
        return fallback
    key = (site[0], site[1], kind)
    if key not in _called_there:
        found = None
        with suppress(OSError), Path(site[0]).open(encoding="utf-8", errors="replace") as file:
            for line in islice(file, site[1] - 1, site[1]):
                found = _assigned(line, kind)
        if len(_called_there) >= _MOST_LINES:
            _called_there.clear()
        _called_there[key] = found
    return _called_there[key] or fallback


def _assigned(line: str, kind: str) -> str | None:
    """Return what a line assigns a call of the class to, or something else if it is all it does."""
    call = rf"([A-Za-z_]\w*)\s*(?::[^=;()]+)?=\s*(?:\w+\.)*{re.escape(kind)}\("
    names: list[str] = re.findall(call, line)
    if line.count(f"{kind}(") > 1:
        return None
    if names:
        return names[0]
    found = re.match(r"\s*(?:self\.)?([A-Za-z_]\w*)\s*(?::[^=]+)?=(?!=)[^;]*$", line)
    return found.group(1) if found else None


def forget(table: dict[int, Any], key: int) -> Callable[[Any], None]:
    """Make what a weak reference calls: the entry of an object that is gone goes, too."""

    def gone(_: Any) -> None:
        table.pop(key, None)

    return gone
