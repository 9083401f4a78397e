"""Weights & Biases: the run that is active, and files of runs that were recorded offline.

wandb is never imported here for a program that does not use it.
"""

from __future__ import annotations

import json
import struct
import sys
from importlib.util import find_spec
from pathlib import Path

from stepwatch.integrations._notes import note_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class _Known:
    """Of a run: the last row with profiling metrics, and whether these have their own axis."""

    def __init__(self) -> None:
        self.row = -1
        self.has_axis = False


_runs: dict[str, _Known] = {}
_RUNS_MOST = 16


def active_run() -> Any:
    """Return the run that the program has begun, None when there is none."""
    return getattr(sys.modules.get("wandb"), "run", None)


def why_not() -> str | None:
    """Return why nothing goes to W&B; None when it does."""
    if active_run() is not None:
        return None
    if sys.modules.get("wandb") is None and find_spec("wandb") is None:
        return "wandb is not installed: profiling metrics go to the console only"
    return (
        "wandb has no active run: profiling metrics go to the console only; "
        "call wandb.init() before training"
    )


def log_profiling(data: dict[str, float], step: int | None) -> bool:
    """Put metrics into a row of the active run's history; tell whether that was done.

    The row is that of the step, unless the run is further already or has metrics in that row: a
    step that a run has left behind would be dropped. The metrics then get a step of their own.
    """
    run = active_run()
    if run is None:
        note_once(why_not() or "")
        return False
    try:
        known = _runs.setdefault(str(run.id), _Known())
        now = int(run.step)
        row = max(now if step is None else max(step, now), known.row + 1)
        if step is not None and row != step and not known.has_axis:
            run.define_metric("profiling/step", hidden=True)
            run.define_metric("profiling/*", step_metric="profiling/step")
            known.has_axis = True
        if known.has_axis:
            data = {**data, "profiling/step": row if step is None else step}
        run.log(data, step=row)
        known.row = row
        if len(_runs) > _RUNS_MOST:
            del _runs[next(iter(_runs))]
    except Exception as error:
        note_once(f"profiling metrics do not reach W&B: {error}")
        return False
    return True


def log_training(data: dict[str, float], step: int) -> None:
    """Put a training's own metrics into the row of the step, or of the run if that is further."""
    run = active_run()
    if run is None:
        return
    try:
        run.log(data, step=max(step, int(run.step)))
    except Exception as error:
        note_once(f"training metrics do not reach W&B: {error}")


# Files -------------------------------------------------------------------------------------------

_HEADER = struct.Struct("<4sHB")
_BLOCK = 32768
_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4


def history(path: str) -> list[dict[str, Any]]:
    """Return the rows of the history in the ``run-….wandb`` file of a run.

    A file whose end is missing, as that of a run that goes on, gives the rows before that.
    """
    rows = []
    data = Path(path).read_bytes()
    if len(data) < _HEADER.size or _HEADER.unpack_from(data)[0] != b":W&B":
        raise ValueError(f"{path} is no file of a W&B run")
    try:
        from wandb.proto import wandb_internal_pb2 as messages
    except ImportError as error:
        raise ImportError(f"{path} can be read where wandb is installed: {error}") from error
    for text in _records(data):
        record = messages.Record()
        record.ParseFromString(text)
        if not record.HasField("history"):
            continue
        row: dict[str, Any] = {}
        for item in record.history.item:
            row[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
        row.setdefault("_step", record.history.step.num)
        rows.append(row)
    return rows


def _records(data: bytes) -> Iterator[bytes]:
    """Go through the records of a log in LevelDB's form: chunks that do not cross blocks."""
    at, record = _HEADER.size, b""
    while at + _CHUNK.size <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _CHUNK.size:
            at += left
            continue
        _, size, kind = _CHUNK.unpack_from(data, at)
        chunk = data[at + _CHUNK.size : at + _CHUNK.size + size]
        if not _FULL <= kind <= _LAST or len(chunk) < size:
            return
        at += _CHUNK.size + size
        record = chunk if kind in (_FULL, _FIRST) else record + chunk
        if kind in (_FULL, _LAST):
            yield record
