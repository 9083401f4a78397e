"""torch.distributed: collectives that Python calls, ranks, and what DDP knows about itself.

DDP makes no Python call per all-reduce: its reducer runs in C++ and keeps times of its own, which
are read once in a while and at the end.
"""

from __future__ import annotations

import atexit
import threading
import weakref

from stepwatch import _core, _imports
from stepwatch.integrations import _dynamo, _notes, _patch, _steps
from stepwatch.integrations._settings import setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_COMMUNICATION = _core.section("communication", "communication")
# DDP itself measures the first ten iterations and then one in a hundred; models of short runs do
# not live until the end.
_STEPS_BETWEEN_LOOKS = 16

_COLLECTIVES = (
    "all_reduce",
    "all_reduce_coalesced",
    "broadcast",
    "broadcast_object_list",
    "reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_gather_object",
    "all_gather_coalesced",
    "gather",
    "gather_object",
    "scatter",
    "scatter_object_list",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "reduce_scatter_single",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "monitored_barrier",
    "send",
    "recv",
)

_local = threading.local()
_sequences: dict[str, int] = {}
_models: list[tuple[str, weakref.ref[Any]]] = []
_replaced: dict[Any, Any] = {}  # ours by the original


def install(_: Any) -> None:
    """Watch collectives and the modules that make a model parallel."""
    _imports.watch("torch.distributed", _watch_collectives)
    _imports.watch("torch.nn.parallel.distributed", _watch_ddp)
    _imports.watch("torch.nn.parallel.data_parallel", _watch_data_parallel)


def remove() -> None:
    """Forget nothing: what was put in place is taken back by ``_patch``."""


# --- Collectives ---------------------------------------------------------------------------


def _watch_collectives(distributed: Any) -> None:
    if not distributed.is_available():
        return
    import torch

    _dynamo.keep_out(torch, _note_collective)
    inner = distributed.distributed_c10d
    for name in _COLLECTIVES:
        original = getattr(inner, name, None)
        if _patch.replace(inner, name, _collective(torch, distributed, name)):
            ours = getattr(inner, name)
            _replaced[original] = ours
            if getattr(distributed, name, None) is original:
                _patch.put(distributed, name, ours)
    # Who began a collective and did other things meanwhile waits for it here.
    work: Any = getattr(distributed, "Work", None)
    if hasattr(work, "wait") and _patch.replace(work, "wait", _wait(torch)):
        _dynamo.skip(torch, work.wait)
    for name, make in (("init_process_group", _init), ("destroy_process_group", _destroy)):
        original = getattr(inner, name, None)
        if _patch.replace(inner, name, make) and getattr(distributed, name, None) is original:
            _patch.put(distributed, name, getattr(inner, name))
    _imports.watch("torch.distributed._functional_collectives", _tell_functional)
    if distributed.is_initialized():
        _note_ranks(distributed)


def _tell_functional(module: Any) -> None:
    """Let torch.compile rewrite collectives as before, whichever of the two functions it meets."""
    known = getattr(module, "traceable_collective_remaps", None)
    if isinstance(known, dict):
        for original, ours in _replaced.items():
            target = known.get(original, known.get(ours))
            if target is not None:
                known[original] = known[ours] = target


def _collective(
    torch: Any, distributed: Any, name: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    is_compiling = torch.compiler.is_dynamo_compiling

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def collective(*args: Any, **kwargs: Any) -> Any:
            # Some are made of others.
            if is_compiling() or getattr(_local, "inside", False):
                return original(*args, **kwargs)
            _local.inside = True
            begin = _core.now()
            try:
                with _COMMUNICATION:
                    result = original(*args, **kwargs)
            finally:
                _local.inside = False
            _note_collective(distributed, name, begin, args, kwargs)
            return result

        _dynamo.skip(torch, collective)
        return collective

    return make


def _wait(torch: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    is_compiling = torch.compiler.is_dynamo_compiling

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or getattr(_local, "inside", False):
                return original(*args, **kwargs)
            with _COMMUNICATION:
                return original(*args, **kwargs)

        return wait

    return make


def _note_collective(
    distributed: Any, name: str, begin: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    end = _core.now()
    try:
        group = kwargs.get("group")
        if group is None:
            group = next((a for a in args if isinstance(a, distributed.ProcessGroup)), None)
        text = getattr(group, "group_name", "default")
        size = distributed.get_world_size(group)
        sequence = _sequences[text] = _sequences.get(text, -1) + 1
        bytes_ = max(map(_bytes, [*args, *kwargs.values()]), default=0)
        _core.put_collective(name, begin, begin, end, bytes_, sequence, text, max(size, 0))
    except Exception as error:
        _notes.note_once(f"{name} is not recorded whole: {type(error).__name__}: {error}")


def _bytes(value: Any) -> int:
    """Return the size of a tensor, or of a list of them."""
    if isinstance(value, (list, tuple)):
        return sum(map(_bytes, value))
    size = getattr(value, "nbytes", 0)
    return size if isinstance(size, int) else 0


# --- Ranks -----------------------------------------------------------------------------------


def _init(original: Callable[..., Any]) -> Callable[..., Any]:
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        import torch

        _note_ranks(torch.distributed)
        return result

    return init_process_group


def _destroy(original: Callable[..., Any]) -> Callable[..., Any]:
    def destroy_process_group(*args: Any, **kwargs: Any) -> Any:
        _read()
        return original(*args, **kwargs)

    return destroy_process_group


def _note_ranks(distributed: Any) -> None:
    try:
        rank, size = distributed.get_rank(), distributed.get_world_size()
        backend = str(distributed.get_backend())
        _core.fact("rank", str(rank))
        _core.fact("world_size", str(size))
        _core.fact("distributed.backend", backend)
        setting("distributed", "rank", rank)
        setting("distributed", "world_size", size)
        setting("distributed", "backend", backend)
    except Exception as error:
        _notes.note_once(f"ranks are not recorded: {type(error).__name__}: {error}")


# --- DDP and DataParallel --------------------------------------------------------------------


def _watch_ddp(module: Any) -> None:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(self, *args, **kwargs)
            _new_model(self)

        return __init__

    _patch.replace(module.DistributedDataParallel, "__init__", make)


def _new_model(model: Any) -> None:
    try:
        if not _models:
            atexit.register(_read)
            _steps.watch(_read, _STEPS_BETWEEN_LOOKS)
        name = "ddp" if not _models else f"ddp {len(_models) + 1}"
        _models.append((name, weakref.ref(model)))
        setting(name, "module", type(model.module).__name__)
        _read_model(name, model)
    except Exception as error:
        _notes.note_once(f"DDP is not recorded: {type(error).__name__}: {error}")


def _read(_: int = 0) -> None:
    """Read what DDP has measured so far."""
    for name, reference in _models:
        model = reference()
        if model is not None:
            try:
                _read_model(name, model)
            except Exception as error:
                _notes.note_once(f"DDP's own times are missing: {type(error).__name__}: {error}")


def _read_model(name: str, model: Any) -> None:
    for key, value in model._get_ddp_logging_data().items():
        if isinstance(value, (int, float, bool)):
            setting(name, key, float(value))
        elif value and len(value) <= 200:
            setting(name, key, str(value))


def _watch_data_parallel(module: Any) -> None:
    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(self, *args, **kwargs)
            setting("data_parallel", "devices", len(getattr(self, "device_ids", ())))

        return __init__

    _patch.replace(module.DataParallel, "__init__", make)
