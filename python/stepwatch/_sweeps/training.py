"""How long the parts of a training step take, with the model put back afterwards."""

from __future__ import annotations

from array import array

from stepwatch import _core
from stepwatch._sweeps import _batches, _state
from stepwatch._sweeps._passes import Passes, close
from stepwatch._sweeps._result import MIB, Measurement
from stepwatch._sweeps._snapshot import Snapshot
from stepwatch._sweeps._steps import PARTS, Trainer, check_model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_END: Any = object()


class _Times:
    """What was measured, batch by batch."""

    def __init__(self) -> None:
        self.parts = {name: array("d") for name in PARTS}
        self.data = array("d")
        self.sizes: list[int | None] = []
        self.memory: list[int] = []
        self.device_memory: list[int] = []
        self.first: float | None = None


def benchmark_training(
    model: Any,
    loader: Any,
    num_batches: int = 10,
    optimizer: Any = None,
    loss_fn: Callable[..., Any] | None = None,
) -> Measurement:
    """Train with some batches of a loader, and say how long forward, backward and update take.

    >>> stepwatch.benchmark_training(model, loader, loss_fn=criterion)["avg_forward_time"]
    0.0123

    Weights, buffers, gradients, the optimizer's state, random states and modes are afterwards what
    they were, and the loader is not touched. Batches are ``(inputs, targets)``, or mappings that
    the model takes as keywords; without ``loss_fn`` the loss is the model's own (``.loss``) or the
    usual one for such outputs and targets, and without ``optimizer`` an Adam is made. Times are
    taken with the device at rest. One step with the first batch comes before those that count.
    ``throughput`` is batches a second, waiting for them not counted.
    """
    found = measure_steps(model, loader, num_batches, optimizer, loss_fn, "benchmark_training")
    return found.measurement()


class Steps:
    """The steps of a training, one by one, and what they were done with."""

    def __init__(self, trainer: Trainer, times: _Times, passes: Passes, made: bool) -> None:
        """Keep what was measured; ``made``: the optimizer was made for it."""
        self.trainer, self.times, self.passes, self.made = trainer, times, passes, made

    def measurement(self) -> Measurement:
        """Return the numbers."""
        return _result(self.trainer, self.times, self.passes, self.made)


def measure_steps(
    model: Any,
    loader: Any,
    num_batches: int,
    optimizer: Any,
    loss_fn: Callable[..., Any] | None,
    caller: str,
) -> Steps:
    """Train with some batches, and put everything back; what :func:`benchmark_training` does."""
    _state.check_count("num_batches", num_batches)
    torch = _state.need_torch(caller)
    check_model(torch, model, caller, optimizer)
    passes = Passes(loader, caller)
    with _state.measuring(caller):
        snapshot = Snapshot(torch, model, optimizer)
        try:
            with torch.enable_grad():
                trainer = Trainer(torch, model, optimizer, loss_fn)
                trainer.make_optimizer()
                model.train()
                times = _run(trainer, passes, num_batches)
        finally:
            snapshot.put_back()
    return Steps(trainer, times, passes, optimizer is None)


def _gradients(trainer: Trainer) -> int:
    """Return what the gradients take on the device, in the allocator's pieces of 512 bytes."""
    sizes = (
        parameter.grad.untyped_storage().nbytes()
        for parameter in trainer.model.parameters()
        if parameter.grad is not None
    )
    return sum((size + 511) // 512 * 512 for size in sizes)


def _run(trainer: Trainer, passes: Passes, num_batches: int) -> _Times:
    times = _Times()
    sizes = _batches.Sizes(passes.batch_size)
    cuda: Any = trainer.torch.cuda if trainer.device.type == "cuda" else None
    iterator: Any = None
    batch: Any = None
    try:
        iterator = iter(passes.make(passes.given))
        while len(times.data) < num_batches:
            batch = None
            begin = _core.now()
            batch = next(iterator, _END)
            waited = _state.since(begin, _core.now())
            if batch is _END:
                break
            if times.first is None:
                times.first = trainer.step(batch)["total"]
            before = _core.resident([0])
            # The step gives up the gradients of the one before, first of all.
            on_device = cuda.memory_allocated(trainer.device) - _gradients(trainer) if cuda else 0

            def looked(on_device: int = on_device) -> None:
                # What the forward keeps for the backward is there now.
                times.device_memory.append(cuda.memory_allocated(trainer.device) - on_device)

            spent = trainer.step(batch, looked if cuda else None)
            times.memory.append(_core.resident([0]) - before)
            for name, seconds in spent.items():
                times.parts[name].append(seconds)
            times.data.append(waited)
            times.sizes.append(sizes.of(batch))
    finally:
        batch = None
        close(iterator)
    if not times.data:
        raise ValueError("the loader gives no batches: there is nothing to train with")
    return times


def _result(trainer: Trainer, times: _Times, passes: Passes, made: bool) -> Measurement:
    total = _core.summarize(times.parts["total"])
    count = total["count"]
    sizes = [size for size in times.sizes if size is not None]
    known = len(sizes) == count
    memory = max(sum(times.memory), 0) / count
    on_device = times.device_memory
    device_memory = sum(on_device) / len(on_device) if on_device else None
    optimizer = type(trainer.optimizer).__name__
    values = {f"avg_{name}_time": _core.summarize(times.parts[name])["mean"] for name in PARTS}
    return Measurement(
        f"{type(trainer.model).__name__}: {count} batches on {trainer.device}, times in seconds",
        {
            "avg_total_time": values.pop("avg_total_time"),
            **values,
            "min_total_time": total["min"],
            "max_total_time": total["max"],
            "std_total_time": total["std"],
            "first_total_time": times.first,
            "avg_data_time": _core.summarize(times.data)["mean"],
            "throughput": count / total["total"],
            "batches_per_second": count / total["total"],
            "samples_per_second": sum(sizes) / total["total"] if known else None,
            "avg_batch_size": sum(sizes) / count if known else None,
            "total_batches_profiled": count,
            "avg_memory_usage": memory / MIB,
            "avg_memory_usage_bytes": round(memory),
            "avg_gpu_memory_usage": None if device_memory is None else device_memory / MIB,
            "avg_gpu_memory_usage_bytes": None if device_memory is None else round(device_memory),
            "device": str(trainer.device),
            "optimizer": f"{optimizer}, made for this" if made else optimizer,
            "loss": trainer.loss_name,
            "notes": list(passes.notes),
        },
    )
