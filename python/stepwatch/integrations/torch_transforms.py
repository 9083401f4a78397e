"""The parts of making a batch: samples, transforms by name, collation.

What torch asks for samples is an object of ours in the place of the dataset: it times, and the
dataset behind it answers. Transforms are reached by the classes that they are of: a method is
exchanged, so that the program finds its own objects wherever it looks. Only functions have no class
to exchange anything in. They are exchanged themselves, for objects that look like them: in a
worker, where the dataset is a copy for that worker alone, or for as long as a batch is being made.
"""

from __future__ import annotations

import functools
import gc
import sys
import types
import weakref
from itertools import chain, islice

from stepwatch import _core
from stepwatch.integrations import _patch, loader_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_GETITEM, _TRANSFORM, _COLLATE, _FETCH = 1, 2, 3, 4
# Where datasets keep what they apply to a sample.
_AUGMENTS = (
    "transform", "transforms", "target_transform", "joint_transform", "image_transform",
    "img_transform", "augment", "augmentation", "augmentations", "augmenter", "tfm", "tfms",
    "pipeline",
)  # fmt: skip
_PREPARES = ("loader", "decoder", "tokenizer", "processor", "preprocess", "preprocessing")
# What a transform calls another one that it has.
_CALLED = ("transform", "target_transform", "transforms")
_CONTAINERS = ("Sequential", "ModuleList", "ModuleDict")
_INNER = ("dataset", "datasets", "base_dataset", "source", "source_datapipe", "data_source")
# How far to look. Datasets of datasets are few; a thousand transforms are no chain.
_DEPTH, _MOST = 8, 256
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    functools.partial,
)


_ABSENT = object()


# Names of all attributes of a class and its bases, and how many these had when they were collected.
_of_classes: weakref.WeakKeyDictionary[type, tuple[int, frozenset[str]]] = (
    weakref.WeakKeyDictionary()
)


def _names_of(kind: type) -> frozenset[str]:
    bases = kind.__mro__
    count = sum([len(base.__dict__) for base in bases])
    known = _of_classes.get(kind)
    if known is None or known[0] != count:
        names = frozenset(name for base in bases for name in base.__dict__)
        known = _of_classes[kind] = (count, names)
    return known[1]


class Attributes:
    """The attributes of one object, as a dictionary that it does not have.

    To ask for its ``__dict__`` would make one, and what uses its attributes slower from then on.
    """

    __slots__ = ("_names", "_owner")

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._names = _names_of(type(owner))

    def get(self, name: str, default: Any = None) -> Any:
        """Return the object's own attribute; those of its class are none, nor are properties."""
        of_class = _ABSENT
        if name in self._names:
            bases = type(self._owner).__mro__
            of_class = next((vars(each)[name] for each in bases if name in vars(each)), _ABSENT)
        if hasattr(type(of_class), "__get__"):  # Asking for it would run code of the program's.
            own = getattr(self._owner, "__dict__", None)
            return own.get(name, default) if type(own) is dict else default
        try:
            value = object.__getattribute__(self._owner, name)
        except AttributeError:
            return default
        return default if value is of_class else value

    def __getitem__(self, name: str) -> Any:
        value = self.get(name, _ABSENT)
        if value is _ABSENT:
            raise KeyError(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        object.__setattr__(self._owner, name, value)

    def __contains__(self, name: str) -> bool:
        return self.get(name, _ABSENT) is not _ABSENT

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self._owner))


class Swap:
    """A function's place in a dictionary or a list, and what stands there while it is timed."""

    __slots__ = ("holder", "key", "original", "timed")

    def __init__(self, holder: Any, key: Any, original: Any, timed: Any) -> None:
        self.holder, self.key, self.original, self.timed = holder, key, original, timed


def swap(swaps: list[Swap]) -> None:
    for each in swaps:
        try:
            if each.holder[each.key] is each.original:
                each.holder[each.key] = each.timed
        except (IndexError, KeyError):
            pass  # The program has changed its chain.


def swap_back(swaps: list[Swap]) -> None:
    for each in swaps:
        try:
            if each.holder[each.key] is each.timed:
                each.holder[each.key] = each.original
        except (IndexError, KeyError):
            # It may have moved what it found; nothing of ours stays in its lists.
            _take_out(each)


def _take_out(swapped: Swap) -> None:
    holder = swapped.holder
    places = range(len(holder)) if isinstance(holder, list) else list(holder)
    for key in places:
        if holder[key] is swapped.timed:
            holder[key] = swapped.original


class Stages:
    """The stages of one loader's batches, in one process."""

    def __init__(self, loader: str, worker: int | None) -> None:
        self.loader, self.worker = loader, worker
        # In the training process they are parts of its steps: making a batch is to prepare it,
        # except for what transforms do, and collation.
        preprocess = self._augment = self._collate = None
        if worker is None:
            preprocess = _core.section("preprocess", "preprocess")
            self._augment = _core.section("augment", "augment")
            self._collate = _core.section("collate", "collate")
        self.context: dict[type, Any] = {}  # Stages of transforms by their class.
        self.fetch = self._stage(_FETCH, "fetch", preprocess)
        self.exchanged: list[tuple[Any, str, Any, Any]] = []

    def _stage(self, kind: int, name: str, section: Any = None) -> Any:
        return loader_rows.stage(self.loader, self.worker, kind, name, section)

    def _transform(self, name: str, augments: bool) -> Any:
        return self._stage(_TRANSFORM, name, self._augment if augments else None)

    def watch(self, fetcher: Any) -> Any:
        """Return what stands for a fetcher of torch's, which is changed inside."""
        before = dict(vars(fetcher))
        samples = None
        if hasattr(fetcher, "dataset_iter"):
            stage = self._stage(_GETITEM, "next")
            fetcher.dataset_iter = _core.timed(fetcher.dataset_iter, stage)
        else:
            # As torch asks: for the samples of a batch at once, where the dataset can do that.
            at_once = fetcher.auto_collation and getattr(fetcher.dataset, "__getitems__", None)
            stage = self._stage(_GETITEM, "getitems" if at_once else "getitem")
            fetcher.dataset = _core.timed(fetcher.dataset, stage)
            if fetcher.auto_collation and not at_once:
                samples = fetcher.dataset
        collate = fetcher.collate_fn
        stage = self._stage(_COLLATE, _name_of(collate), self._collate)
        fetcher.collate_fn = _core.timed(collate, stage)
        # What stands where, and what stood there: attributes of the fetcher and of its iterator.
        self.exchanged = [
            (fetcher, name, now, before[name])
            for name, now in vars(fetcher).items()
            if now is not before.get(name, now)
        ]
        more = () if samples is None else (samples, stage)
        watched = _core.timed(fetcher, self.fetch, self.context, *more)
        self.exchanged.append((None, "_dataset_fetcher", watched, fetcher))
        return watched

    def find(self, dataset: Any, in_place: bool) -> list[Swap]:
        """Time the transforms of a dataset, and of those within it.

        Functions are exchanged at once where it is in place; else how to do it is returned.
        """
        swaps = []
        for holder, key, transform, augments in _transforms(dataset):
            kind = type(transform)
            # Modules of torch are parts of models, too; those are left alone where there is one.
            shared = not in_place and kind.__module__.startswith("torch.")
            if isinstance(transform, _FUNCTIONS) or shared:
                if type(holder) is not tuple:  # Which cannot be given another item.
                    stage = self._transform(_name_of(transform), augments)
                    timed = _core.timed(transform, stage)
                    swaps.append(Swap(holder, key, transform, timed))
            elif _watch_class(kind, fast=in_place):
                self.context[kind] = self._transform(kind.__name__, augments)
        if in_place:
            swap(swaps)
            return []
        return swaps


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


# --- Finding them ------------------------------------------------------------------------------


def _transforms(dataset: Any) -> Iterator[tuple[Any, Any, Any, bool]]:
    """Give (where it is, under what key, transform, whether it augments) of those that work."""
    seen: set[int] = set()
    found = 0
    for owner in _datasets(dataset, seen, _DEPTH):
        attributes = Attributes(owner)
        for name in _AUGMENTS + _PREPARES:
            if name in attributes:
                for holder, key in _parts(attributes, name, seen, _DEPTH):
                    yield holder, key, holder[key], name in _AUGMENTS
                    found += 1
                    if found >= _MOST:
                        return
        for composed in _composed(owner):
            for holder, key in _parts([composed], 0, seen, _DEPTH):
                yield holder, key, holder[key], True
                found += 1
                if found >= _MOST:
                    return


def _composed(owner: Any) -> list[Any]:
    """Return what has a list of transforms, in attributes of whatever name, also of its class.

    The collector is asked for them: it gives the values without making a dictionary of them.
    """
    if isinstance(owner, (list, tuple, dict, set)):
        return []  # Its samples would be among them.
    values = gc.get_referents(owner)[:_MOST]
    inside = [islice(each.values(), _MOST) for each in values if type(each) is dict]
    inside += [islice(list(vars(kind).values()), _MOST) for kind in type(owner).__mro__[:-1]]
    return [
        each
        for each in chain(values, *inside)
        if callable(each)
        and not isinstance(each, (type, *_FUNCTIONS))
        and _listed(Attributes(each))
    ]


def _datasets(dataset: Any, seen: set[int], depth: int) -> Iterator[Any]:
    """Give a dataset and those that it takes its samples from."""
    if depth == 0 or id(dataset) in seen or isinstance(dataset, (str, bytes, type)):
        return
    seen.add(id(dataset))
    if type(dataset) in (list, tuple):
        for each in dataset[:_MOST]:
            yield from _datasets(each, seen, depth - 1)
        return
    yield dataset
    attributes = Attributes(dataset)
    for name in _INNER:
        if name in attributes:
            yield from _datasets(attributes[name], seen, depth - 1)


def _parts(holder: Any, key: Any, seen: set[int], depth: int) -> Iterator[tuple[Any, Any]]:
    """Give the places of the transforms that one consists of, or its own."""
    transform = holder[key]
    if transform is None or isinstance(transform, (str, bytes, int, float, type)):
        return
    if isinstance(transform, _FUNCTIONS):
        yield holder, key
        return
    if depth == 0 or id(transform) in seen:
        return
    seen.add(id(transform))
    inside, keys = _chain(transform)
    for each in keys:
        yield from _parts(inside, each, seen, depth - 1)
    if not keys and callable(transform):
        yield holder, key


def _chain(transform: Any) -> tuple[Any, list[Any]]:
    """Return where the transforms are that this one calls, and their keys, if it calls any."""
    if type(transform) in (list, tuple):
        return transform, list(range(len(transform)))
    if type(transform) is dict:
        return transform, list(transform)
    attributes = Attributes(transform)
    modules = attributes.get("_modules")  # The parts of a module of torch's.
    if isinstance(modules, dict) and type(transform).__name__ in _CONTAINERS:
        return modules, list(modules)
    for place in (attributes, modules if isinstance(modules, dict) else {}):
        inside = _listed(place)
        if inside:
            return inside, list(range(len(inside)))
        keys = [name for name in _CALLED if callable(place.get(name))]
        if keys:
            return place, keys
    return None, []


def _listed(place: Any) -> Any:
    """Return the list of transforms that an object has, if it is one that can be called."""
    inside = place.get("transforms")
    works = type(inside) in (list, tuple) and inside and all(map(callable, inside))
    return inside if works else None


# --- Methods of classes ------------------------------------------------------------------------


def _watch_class(kind: type, fast: bool) -> bool:
    """Time what calls of the class's objects do, where somebody makes a batch.

    A worker has the quick way; in the training process it must be a function, for torch.compile.
    """
    torch: Any = sys.modules.get("torch")
    is_module = torch is not None and issubclass(kind, torch.nn.Module)
    name = "forward" if is_module else "__call__"
    owner = next((each for each in kind.__mro__ if name in vars(each)), None)
    if owner is None or (is_module and owner is torch.nn.Module):
        return False
    method = vars(owner)[name]
    if isinstance(method, _core.timed_method):
        return True
    if getattr(method, "__stepwatch__", False):
        if not fast:
            return True
        method = method.__wrapped__
    if not isinstance(method, types.FunctionType):
        return False
    try:
        if fast:
            setattr(owner, name, _core.timed_method(method))
            return True
        return replace(owner, name, _timed_function)
    except (AttributeError, TypeError):
        return False  # A class that cannot be changed.


def replace(owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> bool:
    """Put a function in the place of another, and keep torch.compile from noticing."""
    if not _patch.replace(owner, name, make):
        return False
    function = getattr(owner, name)
    # Dynamo takes the other one for ours, and does not look inside where it meets ours running.
    function._torchdynamo_inline = function.__wrapped__
    dynamo: Any = sys.modules.get("stepwatch.integrations._dynamo")
    if dynamo is not None:
        dynamo.skip(sys.modules["torch"], function)
    return True


def _timed_function(original: Callable[..., Any]) -> Callable[..., Any]:
    def timed(self: Any, *args: Any, **kwargs: Any) -> Any:
        context = _core.stage_context()
        stage = None if context is None else context.get(type(self))
        if stage is None:
            return original(self, *args, **kwargs)
        return stage.run(original, self, *args, **kwargs)

    return timed
