"""One step of training, part by part: what goes into the model, its loss, the update."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from stepwatch import _core
from stepwatch._sweeps import _batches, _state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_TARGETS = ("labels", "label", "targets", "target", "y")
_MAPPINGS = ("batch", "data", "sample", "samples", "example", "examples")
PARTS = ("transfer", "forward", "loss", "backward", "optimizer", "total")


class Trainer:
    """Does steps with a model, and says how long their parts took."""

    def __init__(
        self, torch: Any, model: Any, optimizer: Any, loss_fn: Callable[..., Any] | None
    ) -> None:
        """Look at the model; nothing is trained yet."""
        self.torch, self.model, self.loss_fn = torch, model, loss_fn
        self.device = next((p.device for p in model.parameters()), torch.device("cpu"))
        self.wait = _state.waiter(torch, self.device)
        self.loss_name = None if loss_fn is None else _name(loss_fn)
        self.optimizer = optimizer

    def make_optimizer(self) -> None:
        """Make one where none is given; it is forgotten with this object."""
        if self.optimizer is None:
            trained = [p for p in self.model.parameters() if p.requires_grad]
            self.optimizer = self.torch.optim.Adam(trained, lr=1e-3)

    def _now(self) -> int:
        if self.wait is not None:
            self.wait()
        return _core.now()

    def step(self, batch: Any, looked: Callable[[], None] | None = None) -> dict[str, float]:
        """Train with one batch; return the seconds of each part, and of all.

        ``looked`` is called when the forward is done and everything that it computed is there.
        """
        begin = self._now()
        batch = _batches.to_device(self.torch, batch, self.device)
        moved = self._now()
        self.optimizer.zero_grad()
        cleared = self._now()
        arguments, named, targets = self._split(batch)
        output = self.model(*arguments, **named)
        forward = self._now()
        loss = self._loss(output, targets)
        lost = self._now()
        if looked is not None:
            looked()
        after_look = self._now()
        loss.backward()
        backward = self._now()
        self.optimizer.step()
        end = self._now()
        seconds = _state.since
        return {
            "transfer": seconds(begin, moved),
            "forward": seconds(cleared, forward),
            "loss": seconds(forward, lost),
            "backward": seconds(after_look, backward),
            "optimizer": seconds(backward, end),
            "total": seconds(begin, end) - seconds(lost, after_look),
        }

    def _split(self, batch: Any) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        """Return what the model is called with, and what the loss compares with."""
        if isinstance(batch, Mapping):
            return self._split_mapping(batch)
        if isinstance(batch, (tuple, list)) and len(batch) > 1:
            return tuple(batch[:-1]), {}, batch[-1]
        if isinstance(batch, (tuple, list)) and len(batch) == 1:
            return (batch[0],), {}, None
        return (batch,), {}, None

    def _split_mapping(self, batch: Any) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
        """Return a mapping as keywords, or as it is where the model takes one thing alone.

        Keywords that the model does not know (a label, an index) are left out.
        """
        named = {str(key): value for key, value in batch.items()}
        target = self._target_of(named)
        inputs = {key: value for key, value in named.items() if key not in _TARGETS}
        if self.loss_fn is not None:
            key = next((key for key in _TARGETS if key in named), None)
            named.pop(key, None)
        known = _parameters(self.model)
        if known is None or any(key in known for key in named):
            taken = named if known is None else {key: named[key] for key in named if key in known}
            return (), taken, target  # Without loss_fn, the model sees its own labels.
        # One input is what the model takes; of several it gets them all, as they came.
        whole = len(inputs) != 1 or _takes_mappings(known)
        return (batch if whole else next(iter(inputs.values())),), {}, target

    @staticmethod
    def _target_of(named: dict[str, Any]) -> Any:
        return next((named[key] for key in _TARGETS if key in named), None)

    def _loss(self, output: Any, targets: Any) -> Any:
        tensor = self.torch.Tensor
        if self.loss_fn is not None:
            given = (output,) if targets is None else (output, targets)
            return self.loss_fn(*given)
        own = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
        if own is None and isinstance(output, (tuple, list)) and output:
            first = output[0]
            own = first if isinstance(first, tensor) and first.dim() == 0 else None
        if own is None and isinstance(output, tensor) and output.dim() == 0:
            own = output
        if isinstance(own, tensor):
            self.loss_name = "the model's own"
            return own
        return self._guess(output, targets)

    def _guess(self, output: Any, targets: Any) -> Any:
        """Return the usual loss for tensors that look like this."""
        torch, functional = self.torch, self.torch.nn.functional
        if isinstance(output, torch.Tensor) and isinstance(targets, torch.Tensor):
            whole = not targets.is_floating_point() and not targets.is_complex()
            if output.is_floating_point() and whole and output.dim() == targets.dim() + 1:
                if output.shape[0] == targets.shape[0] and output.shape[2:] == targets.shape[1:]:
                    self.loss_name = "cross_entropy"
                    return functional.cross_entropy(output, targets.long())
                if output.shape[:-1] == targets.shape:  # Classes last, as language models do.
                    self.loss_name = "cross_entropy"
                    return functional.cross_entropy(output.flatten(0, -2), targets.flatten().long())
            alike = targets.shape in (output.shape, output.squeeze(-1).shape)
            if output.is_floating_point() and targets.is_floating_point() and alike:
                self.loss_name = "mse_loss"
                return functional.mse_loss(output.reshape(targets.shape), targets)
        raise ValueError(
            f"the loss cannot be guessed from an output that is {_describe(torch, output)} and"
            f" targets that are {_describe(torch, targets)}: give loss_fn="
        )


def _parameters(model: Any) -> dict[str, inspect.Parameter] | None:
    """Return what a model's forward may be given by name; None: anything, or nobody knows."""
    try:
        found = dict(inspect.signature(model.forward).parameters)
    except (TypeError, ValueError):
        return None
    kinds = [parameter.kind for parameter in found.values()]
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return None
    return found


def _takes_mappings(known: dict[str, inspect.Parameter]) -> bool:
    """Tell whether the first argument is said to be a mapping, by its type or by its name."""
    first = next(iter(known.values()), None)
    if first is None:
        return False
    kind = str(first.annotation).lower()
    return first.name in _MAPPINGS or "dict" in kind or "mapping" in kind


def _describe(torch: Any, value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).rpartition('.')[2]} of shape {tuple(value.shape)}"
    return "not there" if value is None else f"of type {type(value).__name__}"


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)


def check_model(torch: Any, model: Any, caller: str, optimizer: Any) -> None:
    """Say in one sentence why a model cannot be trained here."""
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"{caller} takes a torch.nn.Module, not {type(model).__name__}")
    is_lazy = torch.nn.parameter.is_lazy
    if any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        raise ValueError(
            f"{caller} needs a model whose parameters exist: this one has lazy modules, so call it"
            " once first"
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError(
            f"{caller} needs a model with something to train: no parameter of this one requires"
            " gradients"
        )
    if optimizer is None:
        return
    if not hasattr(optimizer, "step") or not hasattr(optimizer, "param_groups"):
        raise TypeError(f"optimizer must be an optimizer of torch, not {type(optimizer).__name__}")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ValueError(f"{caller} takes an optimizer that steps without a closure, unlike LBFGS")
