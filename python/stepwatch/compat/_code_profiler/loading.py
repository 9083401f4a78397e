"""How long a loop waits for batches, and what making them consists of."""

from __future__ import annotations

from contextlib import contextmanager

from stepwatch import _core
from stepwatch._sweeps import _state
from stepwatch._sweeps._passes import Passes, close
from stepwatch._sweeps.loader import measure_batches
from stepwatch.compat._code_profiler import console
from stepwatch.compat._code_profiler.probes import MIB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from stepwatch.compat._code_profiler.recorder import Recorder

SECTION = "data_loading_batch"
_NUMBERS = (
    "avg_batch_time",
    "min_batch_time",
    "max_batch_time",
    "std_batch_time",
    "p50_batch_time",
    "p99_batch_time",
    "first_batch_time",
    "avg_batch_size",
    "avg_memory_per_batch",
    "avg_memory_per_batch_bytes",
    "throughput",
    "samples_per_second",
    "batches_per_second",
    "total_batches_profiled",
)
_STAGE_BATCHES = 4  # So many batches tell what a batch consists of.
_KINDS = {2: "transform", 3: "collate", 4: "fetch"}


def profile(
    recorder: Recorder, loader: Any, num_batches: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Measure a loader; return its numbers, and what rules want to know besides."""
    console.banner("PROFILING DATA LOADING")
    dtypes: dict[str, int] = {}
    waits = measure_batches(
        loader, num_batches, "profile_data_loading", lambda batch: _count_types(batch, dtypes)
    )
    for number, (seconds, size, grown) in enumerate(waits.taken, 1):
        recorder.add(SECTION, seconds, category="data_loading")
        console.loading_batch(number, seconds, size, max(grown, 0) / MIB)
    result: dict[str, Any] = {key: waits.numbers[key] for key in _NUMBERS}
    if not recorder.config.is_on("track_memory"):
        del result["avg_memory_per_batch"], result["avg_memory_per_batch_bytes"]
    _add_stages(recorder, loader, result)
    console.summary(
        "Data Loading Summary",
        [
            ("Average batch time", result["avg_batch_time"], "{:.4f}s"),
            ("Min batch time", result["min_batch_time"], "{:.4f}s"),
            ("Max batch time", result["max_batch_time"], "{:.4f}s"),
            ("First batch time", result["first_batch_time"], "{:.4f}s"),
            ("Throughput", result["throughput"], "{:.1f} samples/second"),
            ("Average memory per batch", result.get("avg_memory_per_batch"), "{:.3f}MB"),
            ("Augmentation per batch", result.get("avg_augmentation_time"), "{:.4f}s"),
            ("Collate per batch", result.get("avg_collate_time"), "{:.4f}s"),
        ],
    )
    return result, {**result, **_settings(loader), "dtypes": dtypes, "notes": list(waits.notes)}


def _settings(loader: Any) -> dict[str, Any]:
    """Return what the loader is set to, where it has such settings."""
    workers = getattr(loader, "num_workers", None)
    kind = type(getattr(loader, "dataset", None)).__name__
    return {
        "loader": f"{type(loader).__name__} of {kind}" if workers is not None else _kind(loader),
        "workers": workers if isinstance(workers, int) else None,
        "pin_memory": getattr(loader, "pin_memory", None),
        "persistent_workers": getattr(loader, "persistent_workers", None),
        "prefetch_factor": getattr(loader, "prefetch_factor", None),
        "batch_size": getattr(loader, "batch_size", None),
    }


def _kind(loader: Any) -> str:
    return type(loader).__name__


def _count_types(batch: Any, into: dict[str, int], depth: int = 0) -> None:
    """Add up the bytes of a batch by the type of their elements."""
    dtype, size = getattr(batch, "dtype", None), getattr(batch, "nbytes", None)
    if dtype is not None and isinstance(size, int):
        name = str(dtype).rpartition(".")[2]
        into[name] = into.get(name, 0) + size
    elif depth < 4 and isinstance(batch, dict):
        for part in batch.values():
            _count_types(part, into, depth + 1)
    elif depth < 4 and isinstance(batch, (list, tuple)):
        for part in batch:
            _count_types(part, into, depth + 1)


# --- Augmentation and collation, also in workers ---------------------------------------------


def _add_stages(recorder: Recorder, loader: Any, result: dict[str, Any]) -> None:
    augments = recorder.config.is_on("profile_augmentation")
    collates = recorder.config.is_on("profile_collate")
    session = recorder.session
    if not (augments or collates) or session is None or not session.alive:
        return
    passes = Passes(loader, "profile_data_loading")
    if not passes.is_torch:
        return
    wanted = max(_STAGE_BATCHES, 2 * (passes.given.workers or 0))
    rows = _watched_pass(session, passes, wanted)
    making = [row for row in rows if row["kind"] == "fetch"]
    batches = sum(row["calls"] for row in making)
    if not batches:
        return
    result["avg_making_time"] = sum(row["total_ns"] for row in making) / batches / 1e9
    if augments:
        parts = {row["name"]: row for row in rows if row["kind"] == "transform"}
        _put(recorder, result, "augmentation", parts, batches)
        result["augmentation"] = {
            name: {"calls": int(row["calls"]), "avg_time": row["total_ns"] / row["calls"] / 1e9}
            for name, row in parts.items()
        }
    if collates:
        parts = {row["name"]: row for row in rows if row["kind"] == "collate"}
        _put(recorder, result, "collate", parts, batches)


def _put(
    recorder: Recorder,
    result: dict[str, Any],
    name: str,
    parts: dict[str, dict[str, Any]],
    batches: int,
) -> None:
    seconds = sum(row["total_ns"] for row in parts.values()) / 1e9
    calls = sum(int(row["calls"]) for row in parts.values())
    if calls:
        recorder.add(name, seconds, calls, category=name)
        result[f"avg_{name}_time"] = seconds / batches


def _watched_pass(session: Any, passes: Any, wanted: int) -> list[dict[str, Any]]:
    """Go over a copy of the loader with its stages recorded, and return them.

    It is no training: torch computes no gradients meanwhile, so a recording of the program has it
    as validation.
    """
    import torch

    from stepwatch.integrations import torch_data

    before = _stages(session)
    put_back = _state.save_random()
    validates = _core.train_now()[2]
    iterator: Any = None
    try:
        with _loader_hooks(torch), torch.no_grad():
            copy = passes.make(passes.given)
            name = torch_data.known(copy).name
            try:
                iterator = iter(copy)
                for _ in range(wanted):
                    if next(iterator, None) is None:
                        break
            finally:
                close(iterator)
                iterator = None
                if not validates:
                    _core.train_resumes()  # What follows is no validation.
    finally:
        put_back()
    rows = []
    for key, (calls, total) in _stages(session).items():
        calls_before, total_before = before.get(key, (0, 0))
        if key[0] == name and calls > calls_before:
            made = {"calls": calls - calls_before, "total_ns": total - total_before}
            rows.append({"kind": key[1], "name": key[2], **made})
    _forget_stages()
    return rows


def _stages(session: Any) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return calls and nanoseconds of each stage: of workers as they were written, else as is."""
    from stepwatch.integrations import loader_rows

    found: dict[tuple[str, str, str], tuple[int, int]] = {}

    def add(loader: str, kind: str, name: str, calls: int, total: int) -> None:
        before = found.get((loader, kind, name), (0, 0))
        found[loader, kind, name] = (before[0] + calls, before[1] + total)

    run = session.run()
    for row in [] if run is None else run.stages:
        if row["worker"] is not None:
            add(row["loader"], row["kind"], row["name"], row["calls"], row["total_ns"])
    for (loader, worker, kind, name), stage in loader_rows._stages.items():
        if worker is None and kind in _KINDS:
            nanoseconds = round(stage.ticks / _core.ticks_per_second() * 1e9)
            add(loader, _KINDS[kind], name, stage.calls, nanoseconds)
    return found


@contextmanager
def _loader_hooks(torch: Any) -> Iterator[None]:
    """Have torch's loaders watched for as long as the block takes, unless they are already."""
    from stepwatch.integrations import _patch, torch_data, torch_hooks

    if torch_hooks.is_installed() or not _core.is_recording():
        yield
        return
    torch_data.install(torch)
    try:
        yield
    finally:
        torch_data.remove()
        _patch.restore()


def _forget_stages() -> None:
    """Let the next pass begin to count anew; a later recording would not know these."""
    from stepwatch.integrations import loader_rows, torch_hooks

    if not torch_hooks.is_installed():
        loader_rows._stages.clear()
