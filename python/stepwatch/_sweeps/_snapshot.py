"""A model and its optimizer as they are, to be put back bit for bit after they were trained.

The very objects stay in place: parameters, buffers, gradients and what an optimizer keeps are
afterwards the same tensors, in the same memory, with what was in them. Copies of what lies on a
device are kept on the host.
"""

from __future__ import annotations

from copy import deepcopy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PLAIN = (bool, int, float, str, type(None))


class _Tensor:
    """A tensor, the memory it lies in, and what is there."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.data = tensor.data
        self.requires_grad = tensor.requires_grad
        source = tensor.detach()
        self.copy = source.clone() if source.device.type == "cpu" else source.to("cpu", copy=True)

    def put_back(self) -> None:
        tensor, data = self.tensor, self.data
        if not _same_place(tensor, data):
            tensor.data = data
        try:
            data.copy_(self.copy)
        except RuntimeError:  # Several elements in one place, as expand() makes them.
            if not bool((data == self.copy.to(data.device)).all()):
                tensor.data = self.copy.to(data.device)
        if tensor.is_leaf and tensor.requires_grad != self.requires_grad:
            tensor.requires_grad_(self.requires_grad)


class _Module:
    """A module's own attributes, as far as a call may change them."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.attributes = dict(vars(module))
        self.parts = [
            (part, dict(part)) for part in (module._parameters, module._buffers, module._modules)
        ]

    def tensors(self) -> Iterator[Any]:
        for _, values in self.parts[:2]:
            yield from values.values()
        yield from self.attributes.values()

    def put_back(self) -> None:
        for part, values in self.parts:
            _refill(part, values)
        own = vars(self.module)
        for name in [name for name in own if name not in self.attributes]:
            del own[name]  # What a call has kept may hold all that it computed.
        own.update(self.attributes)


class Snapshot:
    """What a training changes; :meth:`put_back` undoes it, as often as it is called."""

    def __init__(self, torch: Any, model: Any, optimizer: Any = None) -> None:
        """Copy it all, and take the gradients away, so that nothing is added to them."""
        self._torch = torch
        self._tensors: dict[int, _Tensor] = {}
        self._modules = [_Module(module) for module in model.modules()]
        for module in self._modules:
            for tensor in module.tensors():
                self._keep(tensor)
        self._optimizer = optimizer
        parameters_of_groups = []
        if optimizer is not None:
            parameters_of_groups = [p for group in optimizer.param_groups for p in group["params"]]
            for parameter in parameters_of_groups:
                self._keep(parameter)
            self._keep_optimizer()
        found = {id(p): p for p in (*model.parameters(), *parameters_of_groups)}
        self._gradients = [(parameter, parameter.grad) for parameter in found.values()]
        self.forget_gradients()

    def _keep(self, tensor: Any) -> None:
        if isinstance(tensor, self._torch.Tensor) and id(tensor) not in self._tensors:
            self._tensors[id(tensor)] = _Tensor(tensor)

    def _keep_optimizer(self) -> None:
        optimizer = self._optimizer
        self._groups = [
            (group, {key: _copy(value) for key, value in group.items() if key != "params"})
            for group in optimizer.param_groups
        ]
        self._state: dict[Any, Any] = {}
        for key, values in optimizer.state.items():
            if not isinstance(values, dict):
                self._state[key] = (values, None)
                continue
            for value in values.values():
                self._keep(value)
            tensor = self._torch.Tensor
            self._state[key] = (
                values,
                {k: v if isinstance(v, tensor) else _copy(v) for k, v in values.items()},
            )
        self._of_optimizer = _plain_values(vars(optimizer))

    def forget_gradients(self) -> None:
        """Take away the gradients that there are now; those of before are kept."""
        for parameter, _ in self._gradients:
            parameter.grad = None

    def put_back(self) -> None:
        """Make everything as it was."""
        with self._torch.no_grad():
            for module in self._modules:
                module.put_back()
            for tensor in self._tensors.values():
                tensor.put_back()
            for parameter, gradient in self._gradients:
                parameter.grad = gradient
            if self._optimizer is not None:
                self._put_back_optimizer()

    def _put_back_optimizer(self) -> None:
        optimizer = self._optimizer
        optimizer.param_groups[:] = [group for group, _ in self._groups]
        for group, values in self._groups:
            for key in [key for key in group if key != "params" and key not in values]:
                del group[key]
            group.update({key: _copy(value) for key, value in values.items()})
        optimizer.state.clear()
        for key, (values, inside) in self._state.items():
            if inside is not None:
                _refill(values, {k: _copy_plain(v, self._torch) for k, v in inside.items()})
            optimizer.state[key] = values
        vars(optimizer).update(self._of_optimizer)


def _same_place(tensor: Any, data: Any) -> bool:
    try:
        return bool(tensor.data_ptr() == data.data_ptr() and tensor.shape == data.shape)
    except (RuntimeError, NotImplementedError):  # Sparse ones lie in several places.
        return False


def _plain_values(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return what counts calls and the like."""
    return {name: value for name, value in attributes.items() if isinstance(value, _PLAIN)}


def _refill(into: Any, values: dict[Any, Any]) -> None:
    if not isinstance(into, dict):  # A scripted module has what cannot be exchanged.
        return
    if list(into) != list(values) or any(into[key] is not value for key, value in values.items()):
        into.clear()
        into.update(values)


def _copy(value: Any) -> Any:
    return value if isinstance(value, _PLAIN) else deepcopy(value)


def _copy_plain(value: Any, torch: Any) -> Any:
    return value if isinstance(value, torch.Tensor) else _copy(value)
