"""Which batch size is fastest on this machine, and fits."""

from __future__ import annotations

import math
import time
from array import array

from stepwatch import _core
from stepwatch._sweeps import _state
from stepwatch._sweeps._memory import Memory, is_out_of_memory
from stepwatch._sweeps._result import MIB, Sweep, number, plain
from stepwatch._sweeps._samples import Samples
from stepwatch._sweeps._snapshot import Snapshot
from stepwatch._sweeps._steps import PARTS, Trainer, check_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_START = 8
_MOST = 65536
_KNEE = 0.05  # Less gain than this is not worth a larger batch.
_FLAT = 2  # So many doublings without such a gain, and no larger one is tried.
_TURNS = 2  # How often what may be the best is measured again.
_SLOW = 1.5  # So much slower than the fastest: not worth that.
_NEAR = 0.9  # A batch that takes more of the memory than this is one mishap from failing.
_FIXED = 0.2
_LEAST_S = 0.1  # Of steps that are timed, so that a short one is seen often enough.
_MOST_STEPS = 50

_COLUMNS = (
    ("batch size", "batch_size", plain),
    ("batch (ms)", "p50_batch_time", number(2, 1e3)),
    ("samples/s", "throughput", number(1)),
    ("forward", "avg_forward_time", number(2, 1e3)),
    ("backward", "avg_backward_time", number(2, 1e3)),
    ("optimizer", "avg_optimizer_time", number(2, 1e3)),
    ("memory (MB)", "memory", number(1)),
    ("of what is free", "memory_share", lambda share: "-" if share is None else f"{share:.0%}"),
)


# --- The search --------------------------------------------------------------------------


class _Search:
    """Tries one size after the other."""

    def __init__(
        self, trainer: Trainer, snapshot: Snapshot, samples: Samples, own: bool, count: int
    ) -> None:
        self.trainer, self.snapshot, self.samples = trainer, snapshot, samples
        self.own = own  # The optimizer is ours.
        self.count = count
        self.memory = Memory(trainer.torch, trainer.device)
        self.rows: dict[int, dict[str, Any]] = {}
        self.parts: dict[int, dict[str, array[float]]] = {}
        self.notes: list[str] = []

    def _renew(self) -> None:
        """Begin from the same weights each time: other numbers may take other times."""
        self.snapshot.put_back()
        self.snapshot.forget_gradients()
        self.trainer.model.train()
        if self.own:
            self.trainer.optimizer = None
            self.trainer.make_optimizer()

    def _times(self, size: int) -> dict[str, array[float]]:
        """Return the times of each part of each step with this size, with those of before."""
        parts = {name: array("d", self.parts.get(size, {}).get(name, ())) for name in PARTS}
        batch = self.samples.make(size)
        self.trainer.step(batch, self.memory.look)
        count, spent = 0, 0.0
        while count < self.count or (spent < _LEAST_S and count < _MOST_STEPS):
            for name, seconds in self.trainer.step(batch, self.memory.look).items():
                parts[name].append(seconds)
            self.memory.look()
            count, spent = count + 1, spent + parts["total"][-1]
        return parts

    def measure(self, size: int) -> bool:
        """Train with batches of this size; tell whether they fit."""
        self._renew()
        self.memory.begin()
        parts, failed = None, None
        try:
            parts = self._times(size)
        except Exception as error:
            if not is_out_of_memory(self.trainer.torch, error):
                raise
            failed = str(error).partition("\n")[0]
        if parts is None:
            # The exception is gone by now, and with it what its frames referred to.
            self._renew()
            self.memory.free()
            self._add(size, None, f"out of memory: {failed}" if failed else "out of memory")
            return False
        self.parts[size] = parts
        self._add(size, parts, None)
        return True

    def _add(self, size: int, parts: dict[str, array[float]] | None, why: str | None) -> None:
        numbers = {} if parts is None else {name: _core.summarize(parts[name]) for name in PARTS}
        total = numbers.get("total", {})
        usual = total.get("p50")
        used, free = None, self.memory.available
        if parts is not None:
            used = max(self.memory.used, self.rows.get(size, {}).get("memory_bytes") or 0)
        self.rows[size] = {
            "batch_size": size,
            "given": size == self.samples.given,
            "fits": parts is not None,
            "avg_batch_time": total.get("mean"),
            "p50_batch_time": usual,
            "min_batch_time": total.get("min"),
            "max_batch_time": total.get("max"),
            "std_batch_time": total.get("std"),
            **{f"avg_{name}_time": numbers.get(name, {}).get("mean") for name in PARTS[:-1]},
            "throughput": size / usual if usual else None,
            "samples_per_second": size / usual if usual else None,
            "batches_per_second": 1 / usual if usual else None,
            "total_batches_profiled": total.get("count", 0),
            "memory": None if used is None else used / MIB,
            "memory_bytes": used,
            "memory_share": used / free if used is not None and free else None,
            "why": why,
        }

    @property
    def fitting(self) -> list[dict[str, Any]]:
        """Those that were trained with, by size."""
        return [self.rows[size] for size in sorted(self.rows) if self.rows[size]["fits"]]

    def expected(self, size: int) -> float:
        """Return the memory that a size will take, by a line through the last two."""
        rows = self.fitting[-2:]
        last = rows[-1]
        if len(rows) == 1:
            return float(last["memory_bytes"] * size / last["batch_size"])
        slope = (last["memory_bytes"] - rows[0]["memory_bytes"]) / (
            last["batch_size"] - rows[0]["batch_size"]
        )
        return float(last["memory_bytes"] + max(slope, 0.0) * (size - last["batch_size"]))

    def too_much(self, size: int, fraction: float) -> bool:
        """Tell whether a size must not be tried, and say so in a row."""
        free = self.memory.available
        if self.memory.can_fail or free is None or self.expected(size) <= fraction * free:
            return False
        need, room = self.expected(size) / MIB, fraction * free / MIB
        why = f"not tried: it would take about {need:.0f} of {room:.0f} MB"
        self._add(size, None, why)
        return True

    def search(self, start: int, most: int, fraction: float, until: float) -> None:
        """Double the size until memory or time says no; where the first does not fit, halve it."""
        size = start
        while not self.measure(size):
            if size == 1:
                self.notes.append("Not even a batch of one sample fits.")
                return
            size //= 2
        flat, fastest = 0, 0.0
        while True:
            rate = size / self.rows[size]["min_batch_time"]  # Noise only ever adds to it.
            flat = 0 if rate > fastest * (1 + _KNEE) else flat + 1
            fastest = max(fastest, rate)
            if flat >= _FLAT:
                return
            if size >= most or size * 2 in self.rows:
                break
            if time.monotonic() > until:
                self.notes.append("The time was over; budget_s gives more.")
                break
            following = min(size * 2, most)
            if self.too_much(following, fraction) or not self.measure(following):
                self._between(size, following, fraction)
                break
            size = following
        if flat == 0 and len(self.fitting) > 1:
            self.notes.append(f"Throughput was still rising at {self.fitting[-1]['batch_size']}.")

    def again(self, until: float) -> None:
        """Measure what may be the best in turns again, so that noise hits all alike."""
        for turn in range(_TURNS):
            fastest = max((row["throughput"] for row in self.fitting), default=0.0)
            sizes = [r["batch_size"] for r in self.fitting if r["throughput"] * _SLOW >= fastest]
            for size in sizes if turn % 2 else reversed(sizes):
                if len(sizes) < 2 or time.monotonic() > until:
                    return
                self.measure(size)

    def _between(self, fits: int, fails: int, fraction: float) -> None:
        """Try one size between one that fits and one that does not."""
        middle = (fits + fails) // 2
        middle -= middle % 8 if middle >= 16 else 0
        if fits < middle < fails and not self.too_much(middle, fraction):
            self.measure(middle)


# --- The verdict -------------------------------------------------------------------------


def _best(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the smallest size that is nearly as fast as the fastest, with memory to spare."""
    safe = [row for row in rows if row["memory_share"] is None or row["memory_share"] <= _NEAR]
    if not safe:
        return rows[0] if rows else None
    fastest = max(row["throughput"] for row in safe)
    return next(row for row in safe if row["throughput"] >= fastest * (1 - _KNEE))


def _fixed_share(rows: list[dict[str, Any]], row: dict[str, Any]) -> float | None:
    """Return the part of a batch's time that does not depend on its size: where a line begins."""
    if len(rows) < 3:
        return None
    # Relative errors are alike, so each counts by the square of its time.
    points = [(r["batch_size"], r["p50_batch_time"], 1 / r["p50_batch_time"] ** 2) for r in rows]
    weight = sum(w for _, _, w in points)
    x = sum(w * size for size, _, w in points) / weight
    y = sum(w * took for _, took, w in points) / weight
    spread = sum(w * (size - x) ** 2 for size, _, w in points)
    slope = sum(w * (size - x) * (took - y) for size, took, w in points) / spread
    share = (y - slope * x) / row["p50_batch_time"]
    return float(min(max(share, 0.0), 1.0))


def find_batch_size(
    model: Any,
    loader_or_dataset: Any,
    *,
    loss_fn: Callable[..., Any] | None = None,
    optimizer: Any = None,
    collate_fn: Callable[..., Any] | None = None,
    start: int | None = None,
    max_batch_size: int | None = None,
    num_batches: int = 5,
    memory_fraction: float = 0.8,
    budget_s: float = 120.0,
) -> Sweep:
    """Train with larger and larger batches until memory or time per sample says no.

    >>> stepwatch.find_batch_size(model, dataset, loss_fn=criterion).best["batch_size"]
    64

    Sizes double from ``start`` (the loader's own, else 8) up to ``max_batch_size``, the length of
    the dataset, or where a larger batch gains less than 5 % twice. The best is the smallest whose
    throughput is within 5 % of the highest, and takes at most 90 % of the memory that is free. On
    a CPU no size is tried that would take more than ``memory_fraction`` of it; on a GPU the first
    that runs out of memory is the last. Model, optimizer and random states are put back; see
    :func:`benchmark_training` for batches and losses.
    """
    torch = _state.need_torch("find_batch_size")
    check_model(torch, model, "find_batch_size", optimizer)
    _state.check_count("num_batches", num_batches)
    budget = _state.check_seconds("budget_s", budget_s)
    if start is not None:
        _state.check_count("start", start)
    if max_batch_size is not None:
        _state.check_count("max_batch_size", max_batch_size)
    if not 0 < memory_fraction <= 1:
        raise ValueError(
            f"memory_fraction must be more than 0 and at most 1, not {memory_fraction}"
        )
    with _state.measuring("find_batch_size"):
        until = time.monotonic() + budget
        samples = Samples(torch, loader_or_dataset, collate_fn)
        most = max_batch_size or min(samples.length or _MOST, _MOST)
        first = min(start or samples.given or _START, most)
        snapshot = Snapshot(torch, model, optimizer)
        try:
            with torch.enable_grad():
                trainer = Trainer(torch, model, optimizer, loss_fn)
                trainer.make_optimizer()
                search = _Search(trainer, snapshot, samples, optimizer is None, num_batches)
                search.search(first, most, memory_fraction, until)
                search.again(until)
        finally:
            snapshot.put_back()
    return _verdict(search)


def _verdict(search: _Search) -> Sweep:
    rows = [search.rows[size] for size in sorted(search.rows)]
    fitting, notes, trainer = search.fitting, search.notes, search.trainer
    best = _best(fitting)
    smallest = next((row for row in fitting if row["given"]), fitting[0] if fitting else None)
    fixed = None if smallest is None else _fixed_share(fitting, smallest)
    if smallest is not None and fixed is not None and fixed > _FIXED:
        notes.append(
            f"With {smallest['batch_size']}, about {fixed:.0%} of a batch's time does not depend on"
            " its size."
        )
    if best is not None:
        notes.append(
            f"The best is the smallest batch size within {_KNEE:.0%} of the highest throughput that"
            f" takes at most {_NEAR:.0%} of the memory that is free."
        )
    free = search.memory.available
    return Sweep(
        f"{type(trainer.model).__name__} on {trainer.device}"
        + ("" if free is None else f", {free / MIB:.0f} MB free"),
        _COLUMNS,
        rows,
        best,
        notes,
        {
            "device": str(trainer.device),
            "memory_available_bytes": free,
            "fixed_share": None if fixed is None or math.isnan(fixed) else fixed,
            "loss": trainer.loss_name,
            "optimizer": type(trainer.optimizer).__name__,
        },
    )
