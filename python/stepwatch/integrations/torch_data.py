"""The data loader of torch, as the training process sees it.

Plain functions take the place of a few methods of torch's loader and of its iterators. The
iterators ask as before, in the same order; nothing here draws a random number, keeps a batch, or
touches what the program gave to its loader. What runs inside the workers is in
:mod:`stepwatch.integrations.torch_worker`.

One batch has one number in the traces of all processes: the pass, counted over all loaders of the
training process, in the upper half, and its index in the pass in the lower one.
"""

from __future__ import annotations

import sys
import threading
import weakref
from itertools import count

from stepwatch import _core
from stepwatch.integrations import _notes, loader_rows, torch_transforms, torch_worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

GETITEM, TRANSFORM, COLLATE, FETCH, SERIALISE, ROOM, INDEX, WAIT, UNPICKLE, PIN = range(1, 11)
START, FIRST, SHUTDOWN = range(11, 14)

_NEVER = (0, 0)

_now = _core.now
_passes: dict[int, Pass] = {}  # By the iterator's address, as long as that lives.
_loaders: dict[int, Loader] = {}
numbers = count()  # Of passes.
_thread = threading.local()
torch: Any = None


class Loader:
    """What is known of a loader: its row, and its stages in this process."""

    def __init__(self, loader: Any) -> None:
        self.weak = weakref.ref(loader, loader_rows.forget(_loaders, id(loader)))
        self.row = loader_rows.Row(loader)
        name = self.name = self.row.name
        self.wait = loader_rows.stage(name, None, WAIT, "wait")
        self.first = loader_rows.stage(name, None, FIRST, "first")
        self.start = loader_rows.stage(name, None, START, "start")
        self.shutdown = loader_rows.stage(name, None, SHUTDOWN, "shutdown")
        self.unpickle = loader_rows.stage(name, None, UNPICKLE, "unpickle")
        self.pin = loader_rows.stage(name, None, PIN, "pin")
        self.stages: torch_transforms.Stages | None = None  # Where there are no workers.


class Pass(_core.loader_pass):
    """An iterator over a loader; one with persistent workers makes several passes."""

    def __init__(self, loader: Loader, iterator: Any = None) -> None:
        self.loader = loader
        # The loader itself may be gone while its batches are taken: for x in DataLoader(...).
        self.loader_ref = weakref.ref(loader)
        self.wait, self.first = loader.wait, loader.first
        if getattr(iterator, "_pin_memory", False):
            self.pin = loader.pin
        self.ordered = True
        self.swaps: list[torch_transforms.Swap] = []
        self.arrived = 0  # When the bytes of the newest batch were there.
        self.newest = 0  # Its index.
        self.begin()

    def begin(self) -> None:
        loader = self.loader.weak()
        self.number = next(numbers)
        self.index = 0
        self.sent: dict[int, int] = {}
        self.moments: dict[int, tuple[int, int]] = {}  # Received, and pinned or 0.
        # Who goes through the loader on behalf of another has told already.
        if loader is not None and getattr(_thread, "outer", None) is not loader:
            self.epoch = _core.train_epoch(self.loader)
        else:
            self.epoch = self.loader.row.passes
        self.loader.row.begin_pass()

    @property
    def ticket(self) -> tuple[str, str, int, int]:
        """What a worker is told about its work."""
        return (torch_worker.TICKET, self.loader.name, self.number, self.epoch)


def outer(loader: object) -> object:
    """Say on whose behalf this thread goes through loaders from now on; return whose it was."""
    before = getattr(_thread, "outer", None)
    _thread.outer = loader
    return before


def known(loader: Any) -> Loader:
    """Return what is known of the loader."""
    found = _loaders.get(id(loader))
    if found is None or found.weak() is not loader:
        found = _loaders[id(loader)] = Loader(loader)
    return found


def evaluating() -> bool:
    """Tell whether what is done now is no training."""
    return not torch.is_grad_enabled()


def install(module: Any) -> None:
    """Watch the loaders of this torch."""
    global torch
    if _core.option("loader") in ("false", "off", "0"):
        return
    torch = module
    dataloader: Any = sys.modules.get("torch.utils.data.dataloader")
    if dataloader is None:
        _notes.note_once("data loaders are not watched: this torch has no torch.utils.data")
        return
    base = getattr(dataloader, "_BaseDataLoaderIter", None)
    if base is None or not hasattr(base, "__next__"):
        _notes.note_once("data loaders are not watched: this torch has iterators of another kind")
        return
    torch_transforms.replace(dataloader.DataLoader, "__init__", _init)
    torch_transforms.replace(dataloader.DataLoader, "__iter__", _iter)
    torch_transforms.replace(base, "__init__", _base_init)
    torch_transforms.replace(base, "__next__", _next)
    _core.loader_slots(_passes, base.__next__, base.__next__.__wrapped__)
    _install_workers(dataloader)
    kinds = getattr(dataloader, "_DatasetKind", None)
    if kinds is None or not torch_transforms.replace(kinds, "create_fetcher", _create_fetcher):
        _notes.note_once("the parts of making a batch are not watched: this torch has others")
    torch_worker.install(torch)


def remove() -> None:
    """Forget what is known; what was replaced is put back by who replaces."""
    _core.loader_slots(None, None, None)
    _passes.clear()
    _loaders.clear()


def _install_workers(dataloader: Any) -> None:
    """Watch the iterator that has workers; each of its methods is torch's own affair."""
    multi = getattr(dataloader, "_MultiProcessingDataLoaderIter", None)
    hooks = (
        ("__init__", _multi_init),
        ("_reset", _reset),
        ("_try_put_index", _try_put_index),
        ("_try_get_data", _try_get_data),
        ("_shutdown_workers", _shutdown_workers),
    )
    missing = [
        name
        for name, make in hooks
        if multi is None or not torch_transforms.replace(multi, name, make)
    ]
    if missing:
        _notes.note_once(f"loader workers are watched in part: torch has no {', '.join(missing)}")


def _guarded(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except Exception as error:
        _notes.note_once(f"{what}: {type(error).__name__}: {error}")
        return None


# --- The loader --------------------------------------------------------------------------------


def _init(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        _guarded("a data loader's settings are not recorded", known, self)

    return __init__


def _iter(original: Callable[..., Any]) -> Callable[..., Any]:
    def __iter__(self: Any) -> Any:  # noqa: N807
        begin = _now()
        iterator = original(self)
        loader = _loaders.get(id(self))
        if loader is not None:
            loader.start.add(begin)
        return iterator

    return __iter__


# --- Iterators ---------------------------------------------------------------------------------


def _base_init(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, loader, *args, **kwargs)
        _guarded("a pass over a data loader is not recorded", _begin, self, loader)

    return __init__


def _begin(iterator: Any, loader: Any) -> None:
    if _core.train_aside():  # No part of the training.
        _thread.newest = None
        _give_ticket(iterator, torch_worker.NOBODY)
        return
    current = _passes[id(iterator)] = Pass(known(loader), iterator)
    current.weak = weakref.ref(iterator, loader_rows.forget(_passes, id(iterator)))
    # Without workers, this thread makes what fetches for it next.
    _thread.newest = None if getattr(iterator, "_num_workers", 0) else current
    _give_ticket(iterator, current.ticket)
    _core.loader_slot(type(iterator))


def _give_ticket(iterator: Any, ticket: tuple[str, str, int, int]) -> None:
    """Tell workers whose they are by an argument that they have for datapipes only.

    It is made of plain values, so that a worker that is not recorded can be given it, too.
    """
    seed = getattr(iterator, "_shared_seed", 0)
    if seed is None or (type(seed) is tuple and seed[:1] == (torch_worker.TICKET,)):
        iterator._shared_seed = ticket


def _next(original: Callable[..., Any]) -> Callable[..., Any]:
    pass_of = _core.pass_of

    def __next__(self: Any) -> Any:  # noqa: N807
        current = pass_of(_passes, self)
        if current is None:
            return original(self)
        current.ask(self)
        try:
            batch = _make(original, self, current) if current.swaps else original(self)
        except StopIteration:
            _core.train_end(self)
            raise
        except BaseException:
            _core.train_failed(self)
            raise
        if current.sent:
            _guarded("batches are not recorded", _got, self, current)
        else:
            current.got()
        return batch

    return __next__


def _make(original: Callable[..., Any], iterator: Any, current: Pass) -> Any:
    """Ask with functions among the transforms exchanged for timed ones, for as long as it takes."""
    torch_transforms.swap(current.swaps)
    try:
        return original(iterator)
    finally:
        torch_transforms.swap_back(current.swaps)


def _got(iterator: Any, current: Pass) -> None:
    """Count a batch that a worker has made."""
    index = iterator._rcvd_idx - 1 if current.ordered else current.newest
    sent = current.sent.pop(index, 0)
    received, pinned = current.moments.pop(index, _NEVER)
    current.got(sent, received, pinned, index, len(current.moments))


# --- Without workers ---------------------------------------------------------------------------


def _create_fetcher(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_fetcher(kind: Any, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        fetcher = original(kind, dataset, *args, **kwargs)
        worker = torch_worker.current
        if worker is not None:
            watched = _guarded("a worker's work is not recorded", worker.watch, fetcher, dataset)
        else:
            watched = _guarded("making a batch is not recorded", _watch, fetcher)
        return fetcher if watched is None else watched

    return create_fetcher


def _watch(fetcher: Any) -> Any:
    current: Pass | None = getattr(_thread, "newest", None)
    _thread.newest = None
    if current is None:
        return None
    loader = current.loader
    stages = loader.stages
    if stages is None:
        stages = loader.stages = torch_transforms.Stages(loader.name, None)
    current.fetch = stages.fetch
    current.swaps = stages.find(fetcher.dataset, in_place=False)
    current.direct = not current.swaps
    watched = stages.watch(fetcher)
    # The iterator's own: what is in it may hold the iterator, which a pass must not keep alive.
    iterator, exchanged, stages.exchanged = current.weak(), stages.exchanged, []
    if iterator is not None:
        iterator._stepwatch_exchanged = exchanged
    return watched


# --- With workers ------------------------------------------------------------------------------


def _multi_init(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        current = _passes.get(id(self))
        if current is not None:
            _guarded("receiving batches is not recorded", _watch_queue, self, current)
            _guarded("workers are not told from other children", _tell_workers, self)

    return __init__


def _tell_workers(iterator: Any) -> None:
    """Have the monitor count what the workers use apart from other children."""
    for worker in iterator._workers:
        _core.monitor_worker(worker.pid)


def _watch_queue(iterator: Any, current: Pass) -> None:
    """See when the bytes of a batch are there; what follows until it is is unpickling."""
    current.ordered = getattr(iterator, "_in_order", True)
    queue = iterator._worker_result_queue
    receive = queue._recv_bytes

    def recv_bytes(*args: Any, **kwargs: Any) -> Any:
        data = receive(*args, **kwargs)
        current.arrived = _now()
        return data

    queue._recv_bytes = recv_bytes
    torch_worker.pinned_queues[id(queue)] = current
    weakref.finalize(queue, torch_worker.pinned_queues.pop, id(queue), None).atexit = False


def _reset(original: Callable[..., None]) -> Callable[..., None]:
    def _reset(self: Any, *args: Any, **kwargs: Any) -> None:
        if not (args[1] if len(args) > 1 else kwargs.get("first_iter", False)):
            current = _passes.get(id(self))
            if current is not None:
                _guarded("a pass over a data loader is not recorded", _again, self, current)
        original(self, *args, **kwargs)

    return _reset


def _again(iterator: Any, current: Pass) -> None:
    current.begin()
    _give_ticket(iterator, current.ticket)


def _try_put_index(original: Callable[..., None]) -> Callable[..., None]:
    def _try_put_index(self: Any, *args: Any, **kwargs: Any) -> None:
        index = getattr(self, "_send_idx", 0)
        original(self, *args, **kwargs)
        if getattr(self, "_send_idx", 0) != index:
            current = _passes.get(id(self))
            if current is not None:
                current.sent[index] = _now()

    return _try_put_index


def _try_get_data(original: Callable[..., Any]) -> Callable[..., Any]:
    def _try_get_data(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        current = _passes.get(id(self))
        if current is not None:
            _guarded("receiving batches is not recorded", _received, current, result)
        return result

    return _try_get_data


def _received(current: Pass, result: Any) -> None:
    if result[0]:
        index = result[1][0]
        if type(index) is int:
            current.newest = index
            if index not in current.moments:  # The thread that pins was not there before us.
                end = current.loader.unpickle.add(current.arrived)
                current.moments[index] = (end, 0)


def _shutdown_workers(original: Callable[..., None]) -> Callable[..., None]:
    def _shutdown_workers(self: Any) -> None:
        current = None if getattr(self, "_shutdown", True) else _passes.get(id(self))
        if current is None:
            original(self)
            return
        begin = _now()
        try:
            original(self)
        finally:
            current.loader.shutdown.add(begin)

    return _shutdown_workers
