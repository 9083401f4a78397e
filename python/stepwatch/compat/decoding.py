"""Guide 3: the two trainers, for JAX (with Equinox and Optax) and for torch.

Loaders give pairs of inputs and targets, and ``train_tensors`` and ``val_tensors`` are such pairs.
A JAX loss is called with ``(params, static, state, inputs, targets, key)`` and returns
``((value, state), grads)``; a torch loss with ``(output, target)``.
"""

from __future__ import annotations

import contextlib
import inspect
import sys

from stepwatch.compat import _switches, _wandb
from stepwatch.compat._console import say
from stepwatch.compat._training_jax import measured
from stepwatch.compat.training_profiler import (
    LOSS,
    TORCH_STEP,
    UPDATE,
    VALIDATION,
    TrainingProfiler,
    checked_every,
    get_profiler,
)
from stepwatch.integrations._notes import note_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

__all__ = ["train_decoding_jax", "train_decoding_torch"]


def train_decoding_jax(
    model: Any,
    filter_spec: Any,
    train_loader: Iterable[Any],
    train_tensors: Any,
    val_tensors: Any,
    loss_fn: Callable[..., Any],
    state: Any,
    opt: Any,
    opt_state: Any,
    epochs: int = 100,
    log_every: int = 10,
    key: Any = None,
    wandb_run_name: str | None = None,
    enable_profiling: bool = True,
    *,
    make_step: Callable[..., Any] | None = None,
) -> Any:
    """Train a model and return it; report times every ``log_every`` steps.

    Every ``log_every`` epochs, and after the last one, the loss of ``train_tensors`` and
    ``val_tensors`` is printed. With ``make_step`` of your own, which takes and returns what the
    guide says, neither Equinox nor Optax is needed.
    """
    checked_every(log_every)
    profiler = _profiler("train_decoding_jax", enable_profiling)
    to_wandb = _wants_wandb(wandb_run_name)
    split = _keys(key)
    step_fn: Any = make_step
    if step_fn is None:
        equinox = _equinox()
        # Two compiled parts, with and without profiling: so the results are the same.
        loss_fn = loss_fn if hasattr(loss_fn, "lower") else equinox.filter_jit(loss_fn)
        step_fn = _parts(equinox)
    loader: Any = train_loader
    if profiler is not None:
        loader = profiler.profile_data_loading(train_loader)
        step_fn = profiler.profile_make_step(step_fn)
    evaluate = _JaxEvaluation(profiler, filter_spec, loss_fn)
    begun = _steps(profiler)
    steps = 0
    for epoch in range(1, epochs + 1):
        before = steps
        for inputs, targets in _pairs(loader, _array):
            model, state, opt_state, value, _ = step_fn(
                model, state, filter_spec, inputs, targets, loss_fn, opt, opt_state, next(split)
            )
            steps += 1
            if to_wandb and _is_due(steps, log_every):
                _wandb.log_training({"train/loss": float(value)}, begun + steps)
            if profiler is not None:
                profiler.step(log_every or 0)
        if steps == before:
            _say_empty("train_decoding_jax")
        if _is_due(epoch, log_every) or epoch == epochs:
            losses = evaluate(model, state, train_tensors, val_tensors, next(split))
            _tell(epoch, epochs, losses)
            if to_wandb:
                _wandb.log_training({"epoch": epoch, **losses}, begun + steps)
    _report_short(profiler, steps, begun, log_every)
    return model


def train_decoding_torch(
    model: Any,
    train_loader: Iterable[Any],
    train_tensors: Any,
    val_tensors: Any,
    optimizer: Any,
    loss_fn: Callable[..., Any],
    num_epochs: int = 100,
    wandb_run_name: str | None = None,
    model_metadata: dict[str, Any] | None = None,
    device: Any = None,
    enable_profiling: bool = True,
    *,
    log_every: int = 10,
) -> None:
    """Train a model in place; report times every ``log_every`` epochs.

    An optimizer that computes the loss itself (LBFGS) gets a closure: its losses are then a part of
    the update.

    ``device=None`` takes the GPU where there is one; the model then stays there. As often as times,
    and after the last epoch, the loss of ``train_tensors`` and ``val_tensors`` is printed.
    """
    checked_every(log_every)
    torch = _torch()
    profiler = _profiler("train_decoding_torch", enable_profiling)
    to_wandb = _wants_wandb(wandb_run_name, model_metadata)
    place = _place(torch, model, optimizer, device)
    loader: Any = train_loader
    if profiler is not None:
        loader = profiler.profile_data_loading(train_loader)
    step = _TorchStep(torch, profiler, place)
    begun = _steps(profiler)
    for epoch in range(1, num_epochs + 1):
        model.train()
        total, batches = 0.0, 0
        for inputs, targets in _pairs(loader, lambda value: torch.as_tensor(value).to(place)):
            total = total + step(model, optimizer, loss_fn, inputs, targets)
            batches += 1
        if not batches:
            _say_empty("train_decoding_torch")
        losses = {"train/epoch_loss": float(total) / batches} if batches else {}
        due = _is_due(epoch, log_every) or epoch == num_epochs
        if due:
            losses = {
                **losses,
                **_evaluate_torch(
                    torch, profiler, place, model, loss_fn, train_tensors, val_tensors
                ),
            }
            _tell(epoch, num_epochs, losses)
        if to_wandb:
            _wandb.log_training({"epoch": epoch, **losses}, begun + epoch)
        if profiler is not None and batches:
            profiler.step(log_every or 0)
    _report_short(profiler, num_epochs, begun, log_every)


# Of both -----------------------------------------------------------------------------------------


def _profiler(who: str, enable_profiling: bool) -> TrainingProfiler | None:
    """Return the profiler, or None when this training is not to be measured."""
    profiler = get_profiler()
    if not _switches.enabled(argument=bool(enable_profiling), default=True):
        why = "enable_profiling=False" if not enable_profiling else f"{_switches.SWITCH}=false"
        profiler.switched_off(who, why)
        return None
    profiler.switched_on(who)
    return profiler


def _steps(profiler: TrainingProfiler | None) -> int:
    return 0 if profiler is None else profiler.step_count


def _is_due(number: int, every: int) -> bool:
    return bool(every) and every > 0 and number % every == 0


def _pairs(loader: Any, convert: Callable[[Any], Any]) -> Iterator[tuple[Any, Any]]:
    for batch in loader:
        if not isinstance(batch, (tuple, list)) or len(batch) < 2:
            raise TypeError(
                f"a loader gives pairs of inputs and targets here, not {type(batch).__name__}"
            )
        yield convert(batch[0]), convert(batch[1])


def _say_empty(who: str) -> None:
    note_once(f"{who}: train_loader gives no batches, so there is nothing to train or to measure")


def _wants_wandb(name: str | None, metadata: dict[str, Any] | None = None) -> bool:
    """Tell whether the training's own metrics go to W&B: a name was given, and there is a run."""
    run = _wandb.active_run()
    if run is None:
        if name is not None:
            note_once(
                f"wandb_run_name={name!r} is given, but {_wandb.why_not()}".replace(
                    "profiling metrics", "metrics"
                )
            )
        return False
    known = {**(metadata or {}), **({} if name is None else {"wandb_run_name": name})}
    if known:
        try:
            run.config.update(known, allow_val_change=True)
        except Exception as error:
            note_once(f"W&B does not take what is known of the model: {error}")
    return name is not None


def _tell(epoch: int, epochs: int, losses: dict[str, float]) -> None:
    names = {"train/eval_loss": "Train Loss", "val/loss": "Val Loss"}
    parts = [f"{title}: {losses[key]:.4f}" for key, title in names.items() if key in losses]
    if parts:
        say(f"Epoch {epoch}/{epochs}, " + ", ".join(parts))


def _report_short(
    profiler: TrainingProfiler | None, steps: int, begun: int, log_every: int
) -> None:
    """Report at the end what was too short to be reported on its way."""
    if profiler is None or not log_every or log_every < 0 or profiler.step_count == begun:
        return
    if profiler.step_count // log_every == begun // log_every and steps:
        profiler.log_metrics()


# JAX ---------------------------------------------------------------------------------------------


def _equinox() -> Any:
    try:
        import equinox
    except Exception as error:
        raise ModuleNotFoundError(
            "train_decoding_jax needs the packages jax and equinox, or a make_step of your own; "
            f"they cannot be imported here: {error}"
        ) from None
    return equinox


def _keys(key: Any) -> Iterator[Any]:
    """Give one random key after the other; the given one each time where there is no jax."""
    try:
        from jax import random
    except Exception:
        while True:
            yield key
    if key is None:
        key = random.PRNGKey(0)
    while True:
        key, one = random.split(key)
        yield one


def _array(value: Any) -> Any:
    """Return tensors of torch as arrays, which jax takes; all else as it is."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().cpu().numpy()
    return value


def _parts(equinox: Any) -> Callable[..., Any]:
    """Return a step of two compiled parts: the loss, which can be timed so, and the update."""

    @equinox.filter_jit  # type: ignore[untyped-decorator]
    def update(model: Any, filter_spec: Any, grads: Any, opt: Any, opt_state: Any) -> Any:
        params = equinox.filter(model, filter_spec)
        try:
            updates, opt_state = opt.update(grads, opt_state, params)
        except (TypeError, ValueError):
            # The optimizer was begun with all arrays, not with those that are trained.
            updates, opt_state = opt.update(
                grads, opt_state, equinox.filter(model, equinox.is_array)
            )
        return equinox.apply_updates(model, updates), opt_state

    def make_step(
        model: Any,
        state: Any,
        filter_spec: Any,
        inputs: Any,
        targets: Any,
        loss_fn: Any,
        opt: Any,
        opt_state: Any,
        key: Any,
    ) -> Any:
        params, static = equinox.partition(model, filter_spec)
        result = loss_fn(params, static, state, inputs, targets, key)
        try:
            (value, state), grads = result
        except (TypeError, ValueError):
            raise TypeError(
                "a loss_fn returns ((value, state), grads) here, as one of "
                "equinox.filter_value_and_grad(has_aux=True) does"
            ) from None
        model, opt_state = update(model, filter_spec, grads, opt, opt_state)
        return model, state, opt_state, value, grads

    return make_step


class _JaxEvaluation:
    """The loss of whole sets, without gradients: what is not returned is not computed."""

    def __init__(self, profiler: TrainingProfiler | None, filter_spec: Any, loss_fn: Any) -> None:
        self._profiler = profiler
        self._spec = filter_spec
        self._loss = loss_fn
        self._compiled: Any = None

    def __call__(
        self, model: Any, state: Any, train: Any, validation: Any, key: Any
    ) -> dict[str, float]:
        if train is None and validation is None:
            return {}
        equinox = _equinox()
        loss_fn = self._loss
        if self._compiled is None:
            self._compiled = equinox.filter_jit(lambda *args: loss_fn(*args)[0][0])
        losses = {}
        around: Any = contextlib.nullcontext()
        if self._profiler is not None and self._profiler.enabled:
            self._profiler.operation(VALIDATION)
            around = measured(self._profiler, VALIDATION)
        with around:
            params, static = equinox.partition(equinox.nn.inference_mode(model), self._spec)
            for name, pair in (("train/eval_loss", train), ("val/loss", validation)):
                if pair is not None:
                    inputs, targets = _array(pair[0]), _array(pair[1])
                    value = self._compiled(params, static, state, inputs, targets, key)
                    losses[name] = float(value)
        return losses


# torch -------------------------------------------------------------------------------------------


def _torch() -> Any:
    try:
        import torch
    except Exception as error:
        raise ModuleNotFoundError(
            f"train_decoding_torch needs the package torch, which cannot be imported here: {error}"
        ) from None
    return torch


def _place(torch: Any, model: Any, optimizer: Any, device: Any) -> Any:
    """Return the device to train on, with the model and its optimizer there."""
    here = next((value.device for value in model.parameters()), torch.device("cpu"))
    gpu = torch.cuda.is_available()
    if device is None:
        place = torch.device("cuda") if gpu and here.type == "cpu" else here
    else:
        place = torch.device(device)
        if place.type == "cuda" and not gpu:
            note_once("train_decoding_torch: there is no GPU here, so training is on the CPU")
            place = torch.device("cpu")
    model.to(place)
    for values in getattr(optimizer, "state", {}).values():
        for name, value in list(values.items()) if isinstance(values, dict) else ():
            if isinstance(value, torch.Tensor) and value.dim():
                values[name] = value.to(place)
    return place


class _TorchStep:
    """One step; on a GPU, each part is over when its results are there."""

    def __init__(self, torch: Any, profiler: TrainingProfiler | None, place: Any) -> None:
        nothing = contextlib.nullcontext()
        self._step: Any = nothing
        self._loss: Any = nothing
        self._update: Any = nothing
        self._wait: Callable[[], None] | None = None
        if profiler is not None:
            self._loss = profiler.operation(LOSS)
            self._update = profiler.operation(UPDATE)
            self._step = profiler.operation(TORCH_STEP)
            if place.type == "cuda":
                self._wait = lambda: torch.cuda.synchronize(place)

    def __call__(self, model: Any, optimizer: Any, loss_fn: Any, inputs: Any, targets: Any) -> Any:
        def gradients() -> Any:
            with self._loss:
                optimizer.zero_grad()
                loss = loss_fn(model(inputs), targets)
                loss.backward()
                if self._wait is not None:
                    self._wait()
            return loss

        with self._step:
            if _needs_closure(optimizer):
                # It asks for the loss as often as it needs it; the first one is that of the step.
                with self._update:
                    loss = optimizer.step(gradients)
                    if self._wait is not None:
                        self._wait()
                return loss.detach() if hasattr(loss, "detach") else loss
            loss = gradients()
            with self._update:
                optimizer.step()
                if self._wait is not None:
                    self._wait()
        return loss.detach()


def _needs_closure(optimizer: Any) -> bool:
    """Tell whether an optimizer computes the loss itself in each step, as LBFGS does."""
    try:
        found = inspect.signature(optimizer.step).parameters.get("closure")
    except (TypeError, ValueError):
        return False
    return found is not None and found.default is inspect.Parameter.empty


def _evaluate_torch(
    torch: Any,
    profiler: TrainingProfiler | None,
    place: Any,
    model: Any,
    loss_fn: Any,
    train: Any,
    validation: Any,
) -> dict[str, float]:
    losses = {}
    model.eval()
    around = contextlib.nullcontext() if profiler is None else profiler.operation(VALIDATION)
    with around, torch.no_grad():
        for name, pair in (("train/eval_loss", train), ("val/loss", validation)):
            if pair is not None:
                inputs, targets = (torch.as_tensor(value).to(place) for value in pair[:2])
                losses[name] = float(loss_fn(model(inputs), targets))
    return losses
