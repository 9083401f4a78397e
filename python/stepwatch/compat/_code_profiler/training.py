"""How long forward, backward and update of a model take, and those of its layers' gradients."""

from __future__ import annotations

from collections.abc import Mapping

from stepwatch import _core
from stepwatch._sweeps import _state
from stepwatch._sweeps.callables import measure_calls
from stepwatch._sweeps.training import measure_steps
from stepwatch.compat._code_profiler import console
from stepwatch.compat._code_profiler.probes import MIB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from stepwatch.compat._code_profiler.recorder import Recorder

# Part of a step, the switch that it stands under, the section that it becomes, its name in print.
_PARTS = (
    ("forward", "profile_forward_pass", "forward_pass", "Forward"),
    ("backward", "profile_backward_pass", "backward_pass", "Backward"),
    ("optimizer", "profile_optimizer_step", "optimizer_step", "Optimizer"),
)
TOTAL = "training_batch"


def preprocess(recorder: Recorder, function: Any, sample: Any, number: int) -> dict[str, Any]:
    """Call a function with a sample so many times, as one section."""
    console.banner("PROFILING PREPROCESSING")
    times, _, grown = measure_calls(function, (sample,), {}, number, 0, "profile_preprocessing")
    name = getattr(function, "__name__", type(function).__name__)
    for seconds in times:
        recorder.add(f"preprocessing.{name}", seconds, category="preprocessing")
    numbers = _core.summarize(times)
    rate = numbers["count"] / numbers["total"] if numbers["total"] else None
    memory = max(grown, 0) / numbers["count"]
    result: dict[str, Any] = {
        "avg_processing_time": numbers["mean"],
        "min_processing_time": numbers["min"],
        "max_processing_time": numbers["max"],
        "std_processing_time": numbers["std"],
        "avg_memory_usage": memory / MIB,
        "avg_memory_usage_bytes": round(memory),
        "throughput": rate,
        "samples_per_second": rate,
        "total_samples_profiled": numbers["count"],
    }
    if not recorder.config.is_on("track_memory"):
        del result["avg_memory_usage"], result["avg_memory_usage_bytes"]
    console.summary(
        "Preprocessing Summary",
        [
            ("Average processing time", numbers["mean"], "{:.6f}s"),
            ("Min processing time", numbers["min"], "{:.6f}s"),
            ("Max processing time", numbers["max"], "{:.6f}s"),
            ("Throughput", rate, "{:.1f} samples/second"),
            ("Average memory usage", result.get("avg_memory_usage"), "{:.3f}MB"),
        ],
    )
    return result


def train(
    recorder: Recorder,
    model: Any,
    loader: Any,
    num_batches: int,
    optimizer: Any,
    loss_fn: Callable[..., Any] | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Train with some batches and put everything back; return the numbers, and more for rules."""
    console.banner("PROFILING MODEL TRAINING")
    on = recorder.config.is_on
    gradients = Gradients(model) if on("profile_gradient_computation") else None
    try:
        steps = measure_steps(
            model, loader, num_batches, optimizer, loss_fn, "profile_model_training"
        )
    finally:
        if gradients is not None:
            gradients.remove()
    kept = [part for part in _PARTS if on(part[1])]
    parts = steps.times.parts
    for number, total in enumerate(parts["total"], 1):
        shown = {"Total": total}
        recorder.add(TOTAL, total, category="training")
        for part, _, section, title in kept:
            seconds = shown[title] = parts[part][number - 1]
            recorder.add(section, seconds, category=part)
        console.training_batch(number, shown)
    result = _numbers(steps, on)
    if gradients is not None:
        result.update(gradients.result(recorder))
    console.summary(
        "Training Summary",
        [
            ("Average total time", result["avg_total_time"], "{:.4f}s"),
            *[(f"Average {part} time", result[f"avg_{part}_time"], "{:.4f}s") for part, *_ in kept],
            ("Throughput", result["throughput"], "{:.1f} batches/second"),
            ("Average memory usage", result.get("avg_memory_usage"), "{:.3f}MB"),
        ],
    )
    return result, {**result, **_facts(steps)}


def _numbers(steps: Any, on: Callable[[str], bool]) -> dict[str, Any]:
    """Return the numbers as plain values, without the parts that are switched off."""
    result = dict(steps.measurement())
    result.pop("notes", None)
    for part, switch, *_ in _PARTS:
        if not on(switch):
            del result[f"avg_{part}_time"]
    if not on("track_memory"):
        del result["avg_memory_usage"], result["avg_memory_usage_bytes"]
    if not (on("track_gpu") and on("track_gpu_memory")):
        del result["avg_gpu_memory_usage"], result["avg_gpu_memory_usage_bytes"]
    return result


def _facts(steps: Any) -> dict[str, Any]:
    """Return what rules want to know of the model and the device."""
    trainer = steps.trainer
    torch, device = trainer.torch, trainer.device
    on_gpu = device.type == "cuda"
    dtypes: dict[str, int] = {}
    for parameter in trainer.model.parameters():
        name = str(parameter.dtype).rpartition(".")[2]
        dtypes[name] = dtypes.get(name, 0) + parameter.nbytes
    return {
        "on_gpu": on_gpu,
        "capability": torch.cuda.get_device_capability(device)[0] if on_gpu else None,
        "amp": bool(torch.is_autocast_enabled(device.type)) if _told(torch) else None,
        "parameter_dtypes": dtypes,
    }


def _told(torch: Any) -> bool:
    """Whether this torch tells of autocast by device (2.4)."""
    try:
        torch.is_autocast_enabled("cpu")
    except TypeError:
        return False
    return True


class Gradients:
    """How long the gradients of each layer took, and how large they were.

    Gradients come one after the other, from the last layer to the first: the time of one is that
    since the one before it, on a GPU between two events there. The first step does not count, as
    it does not for the parts of a step.
    """

    def __init__(self, model: Any) -> None:
        """Put a hook on each parameter that learns, and one on what the model returns."""
        torch = self._torch = _state.need_torch("profile_model_training")
        self._hooks: list[Any] = []
        self._seconds: dict[str, float] = {}
        self._norms: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}
        self._pending: list[tuple[str, Any, Any]] = []
        self._last: Any = None
        self._begun = 0
        self._cuda = False
        if not isinstance(model, torch.nn.Module):
            return  # Who measures says what is wrong with it.
        self._cuda = any(p.device.type == "cuda" for p in model.parameters())
        self._hooks.append(model.register_forward_hook(self._called))
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                layer = name.rpartition(".")[0] or name
                self._sizes[layer] = self._sizes.get(layer, 0) + parameter.numel()
                self._hooks.append(parameter.register_hook(self._hook(layer)))

    def _called(self, _: Any, __: Any, output: Any) -> None:
        self._last = None
        first = self._first_of(output)
        if first is not None:
            first.register_hook(self._began)

    def _first_of(self, output: Any) -> Any:
        """Return the tensor from which the backward comes: a loss of the model's, or its output."""
        if isinstance(output, Mapping):
            output = (output.get("loss"), *output.values())
        parts = output if isinstance(output, (tuple, list)) else (output,)
        tensors = (part for part in parts if isinstance(part, self._torch.Tensor))
        return next((tensor for tensor in tensors if tensor.requires_grad), None)

    def _began(self, _: Any) -> None:
        self._begun += 1
        self._last = self._now() if self._begun > 1 else None

    def _now(self) -> Any:
        if not self._cuda:
            return _core.now()
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _hook(self, layer: str) -> Callable[[Any], None]:
        def hook(gradient: Any) -> None:
            now = self._now()
            self._norms[layer] = gradient.detach().norm()
            if self._last is None:
                return
            if self._cuda:
                self._pending.append((layer, self._last, now))
            else:
                self._add(layer, _state.since(self._last, now))
            self._last = self._now()

        return hook

    def _add(self, layer: str, seconds: float) -> None:
        self._seconds[layer] = self._seconds.get(layer, 0.0) + seconds

    def remove(self) -> None:
        """Take the hooks away."""
        for hook in self._hooks:
            hook.remove()

    def result(self, recorder: Recorder) -> dict[str, Any]:
        """Return mean seconds and the newest norm by layer; the sum becomes a section."""
        for layer, begin, end in self._pending:
            end.synchronize()
            self._add(layer, begin.elapsed_time(end) / 1e3)
        steps = max(self._begun - 1, 1)
        if self._seconds:
            total = sum(self._seconds.values())
            recorder.add("gradient_computation", total, steps, category="gradient")
        return {
            "gradient_times": {layer: total / steps for layer, total in self._seconds.items()},
            "gradient_norms": {layer: float(norm) for layer, norm in self._norms.items()},
            "gradient_parameters": dict(self._sizes),
        }
