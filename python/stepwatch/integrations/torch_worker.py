"""The workers of torch's data loader, from within.

A worker is told whose it is by its arguments, which torch passes on: see ``_give_ticket`` in
:mod:`stepwatch.integrations.torch_data`. Its queues are exchanged for objects that tell when it
asked, got and gave; torch's own loop runs between them as it is.
"""

from __future__ import annotations

import inspect
import os
import sys

from stepwatch import _core
from stepwatch.integrations import _notes, _patch, torch_transforms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

TICKET = "stepwatch"
NOBODY = (TICKET, "", 0, 0)  # A worker whose work is no part of the training.
_SERIALISE, _ROOM, _INDEX = 5, 6, 7
_now = _core.now

current: Worker | None = None  # What this process is, if it is a worker.
pinned_queues: dict[int, Any] = {}  # Passes of torch_data, by the queue their batches come from.


def install(torch: Any) -> None:
    utilities = getattr(torch.utils.data, "_utils", None)
    worker = getattr(utilities, "worker", None)
    if worker is None or not _patch.replace(worker, "_worker_loop", _worker_loop):
        _notes.note_once("loader workers are not watched: this torch has another loop for them")
    else:
        _take_over(worker._worker_loop)
    pin = getattr(utilities, "pin_memory", None)
    if pin is None or not _patch.replace(pin, "_pin_memory_loop", _pin_memory_loop):
        _notes.note_once("pinning memory is not watched: this torch has another loop for it")


def _take_over(loop: Any) -> None:
    """Be in time for a worker of a fork server, which knew what to do before torch was watched."""
    process: Any = sys.modules.get("multiprocessing.process")
    if process is not None:
        this = process.current_process()
        if getattr(this, "_target", None) is loop.__wrapped__:
            this._target = loop


# --- The worker --------------------------------------------------------------------------------


def _worker_loop(original: Callable[..., None]) -> Callable[..., None]:
    names = list(inspect.signature(original).parameters)

    def _worker_loop(*args: Any, **kwargs: Any) -> None:
        try:
            changed = _begin({**dict(zip(names, args)), **kwargs})
            args = tuple(changed[name] for name in names[: len(args)])
            kwargs = {name: changed[name] for name in kwargs}
        except Exception as error:
            _notes.note_once(f"a worker is not watched: {type(error).__name__}: {error}")
        original(*args, **kwargs)

    return _worker_loop


def _begin(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of the worker's loop, with queues that tell."""
    global current
    ticket: Any = given.get("shared_seed")
    changed = dict(given)
    if _is_ticket(ticket):
        changed["shared_seed"] = None  # As torch has it.
        if ticket == NOBODY:
            return changed
    else:
        ticket = (TICKET, f"DataLoader({type(given['dataset']).__qualname__})", 0, 0)
    if _is_recorded() and "index_queue" in given and "data_queue" in given:
        worker = Worker(ticket, given["worker_id"], given["dataset"])
        changed["index_queue"] = _Indices(given["index_queue"], worker)
        changed["data_queue"] = _Results(given["data_queue"], worker)
        worker.watch_queue(given["data_queue"])
        current = worker
    return changed


def _is_recorded() -> bool:
    """Tell whether this worker has a recording.

    In the fork of a program that records itself it begins with the first question, and nobody
    but us ends it: such a worker ends by ``os._exit``.
    """
    if _core.step_number() < 0:
        return False
    util: Any = sys.modules.get("multiprocessing.util")
    if util is not None and not os.environ.get("STEPWATCH_RUN_ID"):
        util.Finalize(None, _core.stop, exitpriority=-1_000_000)
    return True


def _is_ticket(value: Any) -> bool:
    return type(value) is tuple and len(value) == 4 and value[0] == TICKET


class Worker:
    """What this worker does, and for whom."""

    def __init__(self, ticket: tuple[str, str, int, int], number: int, dataset: Any) -> None:
        self.name, self.number = ticket[1], number
        self.begin_pass(ticket)
        self.dataset = dataset
        self.asked = 0  # When the newest index was there.
        self.pending: dict[int, tuple[int, ...]] = {}  # Batches on their way, by address.
        self.sending: tuple[int, ...] | None = None
        self.stages = torch_transforms.Stages(self.name, number)
        self.serialise = self._stage(_SERIALISE, "serialise")
        self.room = self._stage(_ROOM, "pipe")
        # Everything that was asked for is done: that is as far ahead as the loader goes.
        self.ahead = self._stage(_INDEX, "prefetched")
        self.between = self._stage(_INDEX, "between passes")
        # A dataset may be changed by what the loader calls first; see watch.
        self.found = False

    def _stage(self, kind: int, name: str) -> Any:
        return _core.stage(self.name, self.number, kind, name)

    def begin_pass(self, ticket: tuple[str, str, int, int]) -> None:
        self.ordinal, self.epoch = ticket[2:]
        self.served = 0

    def watch(self, fetcher: Any, dataset: Any) -> Any:
        """Return what stands for the fetcher; loaders within this worker are not its own."""
        if dataset is not self.dataset:
            return None
        if not self.found:
            self.found = True
            self.stages.find(dataset, in_place=True)
        return self.stages.watch(fetcher)

    def got(self, since: int, item: Any) -> None:
        """An index came, or word of another pass."""
        end = _now()
        if type(item) is tuple:
            (self.ahead if self.served else self.between).add(since, end)
            self.served += 1
            self.asked = end
            return
        self.between.add(since, end)
        if item is not None:
            ticket: Any = getattr(item, "seed", None)
            if not _is_ticket(ticket):
                ticket = (TICKET, self.name, self.ordinal + 1, self.epoch + 1)
            self.begin_pass(ticket)

    def gives(self, item: Any) -> None:
        """A batch goes into the queue."""
        if type(item) is tuple and len(item) == 2 and type(item[0]) is int:
            fetch = self.stages.fetch
            fetched = fetch.begin >= self.asked
            self.pending[id(item)] = (
                item[0],
                self.asked,
                fetch.begin if fetched else 0,
                fetch.end if fetched else 0,
                fetch.cpu_ns if fetched else 0,
                _bytes_of(item[1]),
                self.ordinal << 32 | item[0],
                self.epoch,
            )

    def watch_queue(self, queue: Any) -> None:
        """Time what the queue's own thread does: make bytes of a batch, and send them."""
        queues: Any = sys.modules.get("multiprocessing.queues")
        pickler = getattr(queues, "_ForkingPickler", None)
        send = getattr(queue, "_send_bytes", None)
        if pickler is None or send is None or getattr(queue, "_thread", None) is not None:
            _notes.note_once("sending batches is not watched: multiprocessing has other queues")
            return
        queues._ForkingPickler = _pickler_for(self, pickler)

        def send_bytes(*args: Any, **kwargs: Any) -> Any:
            result = send(*args, **kwargs)
            sent, self.sending = self.sending, None
            if sent is not None:
                self.sent(sent)
            return result

        queue._send_bytes = send_bytes

    def sent(self, batch: tuple[int, ...]) -> None:
        # Who reads may be quicker than this thread is to look at the clock again.
        put = self.serialise.end
        end = self.room.add(put)
        index, asked, fetch_begin, fetch_end, cpu, size, number, epoch = batch
        _core.put_batch(
            self.name, asked, end, fetch_begin, fetch_end, put, 0, 0, cpu, size, number, epoch,
            index, self.number, 0,
        )  # fmt: skip
        # Workers that persist are killed when the program ends: this may be the last batch.
        _core.stages_keep()


def _pickler_for(worker: Worker, pickler: Any) -> Any:
    """Make a pickler like that of multiprocessing, which knows the worker's batches."""
    dumps = pickler.dumps

    class ForkingPickler(pickler):  # type: ignore[misc]
        @classmethod
        def dumps(cls, obj: Any, *args: Any, **kwargs: Any) -> Any:
            batch = worker.pending.pop(id(obj), None)
            if batch is None:
                return dumps(obj, *args, **kwargs)
            data = worker.serialise.run(dumps, obj, *args, **kwargs)
            worker.sending = batch
            return data

    return ForkingPickler


def _bytes_of(data: Any, depth: int = 3) -> int:
    """Return how many bytes the tensors and arrays of a batch have, as far as one sees."""
    size = getattr(data, "nbytes", None)
    if type(size) is int:
        return size
    if isinstance(data, (str, bytes)):
        return len(data)
    if depth == 0:
        return 0
    if isinstance(data, dict):
        return sum(_bytes_of(each, depth - 1) for each in list(data.values())[:64])
    if isinstance(data, (list, tuple)):
        return sum(_bytes_of(each, depth - 1) for each in data[:64])
    return 0


class _Queue:
    """A queue of the worker's, which is the real one in everything but what is timed."""

    def __init__(self, queue: Any, worker: Worker) -> None:
        self._queue, self._worker = queue, worker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class _Indices(_Queue):
    _since = 0  # When waiting began, where it did not end with an index.

    def get(self, *args: Any, **kwargs: Any) -> Any:
        self._since = self._since or _now()
        item = self._queue.get(*args, **kwargs)
        since, self._since = self._since, 0
        try:
            self._worker.got(since, item)
        except Exception as error:
            _notes.note_once(f"a worker's waiting is not recorded: {error}")
        return item


class _Results(_Queue):
    def put(self, item: Any, *args: Any, **kwargs: Any) -> None:
        try:
            self._worker.gives(item)
        except Exception as error:
            _notes.note_once(f"a worker's batches are not recorded: {error}")
        self._queue.put(item, *args, **kwargs)


# --- The thread that pins ----------------------------------------------------------------------


def _pin_memory_loop(original: Callable[..., None]) -> Callable[..., None]:
    def _pin_memory_loop(in_queue: Any, out_queue: Any, *args: Any, **kwargs: Any) -> None:
        into = _Received(in_queue)
        original(into, _Pinned(out_queue, into), *args, **kwargs)

    return _pin_memory_loop


class _Received:
    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self.end = 0

    def get(self, *args: Any, **kwargs: Any) -> Any:
        item = self._queue.get(*args, **kwargs)
        self.end = _now()
        return item

    def pass_of(self) -> Any:
        return pinned_queues.get(id(self._queue))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class _Pinned:
    def __init__(self, queue: Any, received: _Received) -> None:
        self._queue, self._received = queue, received

    def put(self, item: Any, *args: Any, **kwargs: Any) -> None:
        try:
            current = self._received.pass_of()
            if current is not None and type(item[0]) is int:
                received = self._received.end
                current.loader.unpickle.add(current.arrived, received)
                pinned = current.loader.pin.add(received)
                current.moments[item[0]] = (received, pinned)
        except Exception as error:
            _notes.note_once(f"pinning memory is not recorded: {error}")
        self._queue.put(item, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)
