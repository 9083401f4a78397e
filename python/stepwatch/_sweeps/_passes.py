"""Passes over a loader that is not touched: each goes over a copy, with settings of its own."""

from __future__ import annotations

import random
import sys
from collections import deque
from types import GeneratorType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    class Setting(NamedTuple):
        """What can be set; None: it is not a loader that has such settings."""

        workers: int | None
        prefetch: int | None

else:
    from collections import namedtuple

    Setting = namedtuple("Setting", ("workers", "prefetch"))

_USED_UP = (
    "{} takes a loader that can be gone through again; {} is an iterator, which measuring it"
    " would use up"
)


class Passes:
    """Gives what can be gone through in the place of a loader."""

    def __init__(self, loader: Any, caller: str) -> None:
        """Look at the loader, and at nothing of what it gives."""
        self.notes: list[str] = []
        inner = vars(loader).get("base_dataloader") if hasattr(loader, "__dict__") else None
        if inner is not None and _loader_class(inner) is not None:
            # Going over the one around it would be noticed by the program's accelerator.
            self.notes.append(
                f"The loader inside the {type(loader).__name__} is measured: moving batches to the"
                " device is no part of it."
            )
            loader = inner
        self.loader = loader
        self._class = _loader_class(loader)
        self._copies: dict[Setting, Any] = {}
        if self._class is None:
            if not hasattr(loader, "__iter__"):
                raise TypeError(f"{caller} takes a loader, not {type(loader).__name__}")
            if iter_is_self(loader):
                raise TypeError(_USED_UP.format(caller, f"this {type(loader).__name__}"))
            self.given = Setting(None, None)
            self.batch_size = None
            return
        index = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
        for sampler in (index, getattr(index, "sampler", None)):
            if iter_is_self(sampler):
                raise TypeError(_USED_UP.format(caller, "its sampler"))
        workers = int(loader.num_workers)
        prefetch = getattr(loader, "prefetch_factor", None)
        self.given = Setting(workers, prefetch if workers else None)
        size = getattr(loader, "batch_size", None)
        self.batch_size = size if isinstance(size, int) else None
        if self._class is not type(loader) and _holds_iterator(loader):
            self.notes.append(
                f"{type(loader).__name__} keeps an iterator of its own, so it is measured as the"
                " plain DataLoader that it is below."
            )

    @property
    def is_torch(self) -> bool:
        """Whether this is a loader of torch."""
        return self._class is not None

    @property
    def is_iterable(self) -> bool:
        """Whether its dataset says itself what comes next."""
        torch: Any = sys.modules.get("torch")
        return self.is_torch and isinstance(self.loader.dataset, torch.utils.data.IterableDataset)

    @property
    def length(self) -> int | None:
        """How many batches there are, where that is known."""
        if self.is_iterable:
            return None  # Its loader remembers having been asked.
        try:
            return len(self.loader)
        except (TypeError, NotImplementedError):
            return None

    def make(self, setting: Setting) -> Any:
        """Return what to go through: a copy with these settings, or the thing itself."""
        if self._class is None:
            return self.loader
        copy = self._copies.get(setting)
        if copy is None:
            copy = self._copies[setting] = self._copy(setting)
        return copy

    def _copy(self, setting: Setting) -> Any:
        loader, kind = self.loader, type(self.loader)
        if kind is not self._class and _holds_iterator(loader):
            kind = self._class
        own = dict(vars(loader))
        known: dict[int, Any] = {}
        keep = loader.dataset
        # torch refuses to change some of these by name, once a loader is made.
        for name in ("generator", "sampler", "batch_sampler"):
            own[name] = _copied(own.get(name), keep, known)
        own["_iterator"] = None
        own["persistent_workers"] = False  # One pass is all there will be.
        if setting != self.given:
            own["num_workers"] = setting.workers
            own["prefetch_factor"] = setting.prefetch
            # What is said about more workers than cores is no news to who tries that.
            own["check_worker_number_rationality"] = _say_nothing
        if not setting.workers:
            own["timeout"] = 0
            own["_DataLoader__multiprocessing_context"] = None
        copy = object.__new__(kind)
        vars(copy).update(own)
        return copy


def iter_is_self(thing: Any) -> bool:
    """Tell whether going through it uses it up. Nothing is called."""
    if isinstance(thing, GeneratorType):
        return True
    return (
        hasattr(type(thing), "__next__")
        and hasattr(type(thing), "__iter__")
        and not hasattr(type(thing), "__len__")
        and not _is_a(thing, "Sampler")
    )


def workers_of(iterator: Any) -> list[int]:
    """Return the processes that work for an iterator over a loader."""
    found = [getattr(each, "pid", None) for each in getattr(iterator, "_workers", None) or ()]
    return [pid for pid in found if isinstance(pid, int)]


def close(iterator: Any) -> None:
    """End a pass now, whoever still refers to it."""
    shutdown = getattr(iterator, "_shutdown_workers", None)
    if shutdown is not None:
        shutdown()
    elif isinstance(iterator, GeneratorType):
        iterator.close()


def _say_nothing() -> None:
    pass


def _loader_class(loader: Any) -> Any:
    torch: Any = sys.modules.get("torch")
    data = getattr(getattr(torch, "utils", None), "data", None)
    kind = getattr(data, "DataLoader", None)
    return kind if kind is not None and isinstance(loader, kind) else None


def _is_a(thing: Any, name: str) -> bool:
    torch: Any = sys.modules.get("torch")
    kind = getattr(getattr(getattr(torch, "utils", None), "data", None), name, None)
    return kind is not None and isinstance(thing, kind)


def _holds_iterator(loader: Any) -> bool:
    """Tell whether a class of somebody else's keeps a pass open in the loader."""
    return any(
        hasattr(value, "_sampler_iter")
        for name, value in vars(loader).items()
        if name != "_iterator"
    )


def _is_sampler(value: Any) -> bool:
    """Tell whether this says which samples come next; what has them itself does not."""
    if not hasattr(value, "__dict__") or isinstance(value, type):
        return False
    if _is_a(value, "Sampler"):
        return True
    names = type(value)
    has_samples = hasattr(names, "__getitem__") or _is_a(value, "Dataset")
    return hasattr(names, "__iter__") and not has_samples


def _copied(value: Any, keep: Any, known: dict[int, Any]) -> Any:
    """Return a copy of what a sampler changes as it goes; the dataset is never copied.

    Samplers, generators and plain containers are copied, anything else is shared.
    """
    if value is None or value is keep or isinstance(value, (int, float, str, bytes)):
        return value
    if id(value) in known:
        return known[id(value)][0]
    copy: Any = value
    kind = type(value)
    torch: Any = sys.modules.get("torch")
    numpy: Any = sys.modules.get("numpy")
    if isinstance(value, torch.Generator):
        copy = torch.Generator(device=value.device)
        copy.set_state(value.get_state())
    elif isinstance(value, random.Random) and not isinstance(value, random.SystemRandom):
        copy = random.Random.__new__(kind)
        copy.setstate(value.getstate())
    elif numpy is not None and isinstance(
        value, (numpy.random.Generator, numpy.random.RandomState)
    ):
        from copy import deepcopy

        copy = deepcopy(value)
    elif isinstance(value, torch.Tensor):
        copy = value.clone()
    elif numpy is not None and isinstance(value, numpy.ndarray):
        copy = value.copy()
    elif kind in (list, set, deque, tuple):
        plain = set(map(type, value)) <= {int, float, str, bytes, bool, type(None)}
        copy = kind(value if plain else [_copied(each, keep, known) for each in value])
    elif kind is dict:
        copy = {key: _copied(each, keep, known) for key, each in value.items()}
    elif _is_sampler(value):
        copy = object.__new__(kind)
        known[id(value)] = (copy, value)
        vars(copy).update({name: _copied(each, keep, known) for name, each in vars(value).items()})
    known[id(value)] = (copy, value)  # The value too, so that its address stays its own.
    return copy
