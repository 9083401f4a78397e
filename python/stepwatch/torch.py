"""``stepwatch.torch``: see a torch program without ``stepwatch run``."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from stepwatch import _core, integrations
from stepwatch.integrations import _notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any


class Watch:
    """What :func:`auto` returns: the hooks, until they are removed."""

    def __init__(self, own: bool) -> None:
        """Tell whether the hooks are ours: those of ``stepwatch run`` stay."""
        self._own = own

    def remove(self) -> None:
        """Put everything of torch back as it was, unless the hooks were there before."""
        if not self._own:
            return
        self._own = False
        hooks: Any = sys.modules.get("stepwatch.integrations.torch_hooks")
        if hooks is not None:
            hooks.remove()
        integrations.remove()

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Remove the hooks; an exception passes."""
        self.remove()


def auto(model: Any = None, optimizer: Any = None, loader: Any = None) -> Watch:
    """Watch torch from now on: steps, phases, modules and the loader of an unchanged loop.

    Below ``stepwatch run`` this happens by itself. Elsewhere call it once, before the loop and
    best before the model is built. What is given is looked at now instead of when it is first
    used: the model's parts get their names, a loader or an optimizer of a class that torch does
    not know gets watched.

    >>> stepwatch.start(out="runs/today")
    >>> stepwatch.torch.auto(model)
    >>> train(model)
    >>> print(stepwatch.stop().report())

    The hooks stay until ``.remove()`` of what is returned, or the end of a ``with`` block of it.
    """
    torch = import_module("torch")
    if model is not None and not isinstance(model, torch.nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    off = ("0", "false", "off", "no")
    if os.environ.get("STEPWATCH_ENABLED", "").lower() in off or _core.option("phases") in off:
        return Watch(own=False)
    hooks = import_module("stepwatch.integrations.torch_hooks")
    own = not hooks.is_installed()
    integrations.install()
    hooks.install(torch)
    try:
        _look_at(model, optimizer, loader)
    except Exception as error:
        _notes.note_once(f"stepwatch.torch.auto(): {type(error).__name__}: {error}")
    return Watch(own)


def _look_at(model: Any, optimizer: Any, loader: Any) -> None:
    if model is not None and _core.is_recording():
        modules = import_module("stepwatch.integrations.torch_modules")
        modules.name_model(model)
    if optimizer is not None:
        optim = import_module("stepwatch.integrations.torch_optim")
        optim.watch(optimizer)
    if loader is not None:
        data = import_module("stepwatch.integrations.torch_data")
        watch = getattr(data, "watch", None)
        if watch is not None:
            watch(loader)


__all__ = ["Watch", "auto"]
