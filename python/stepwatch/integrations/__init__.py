"""Adapters of frameworks: they tell the recorder what a training program does, without its help.

Nothing is imported here that the program has not imported itself. Each adapter waits for its
framework and then puts plain functions in the place of some of the framework's public ones.
"""

from __future__ import annotations

import sys

from stepwatch import _core, _imports
from stepwatch.integrations import _notes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# What is watched for, and the adapter of this package that takes it from there.
_ADAPTERS: tuple[tuple[str, str], ...] = (
    ("torch", "torch_hooks"),
    ("jax", "jax_hooks"),
    ("lightning.pytorch", "lightning_hooks"),
    ("pytorch_lightning", "lightning_hooks"),
    ("transformers.trainer", "hf_hooks"),
    ("keras", "keras_hooks"),
    ("accelerate.data_loader", "any_loader"),
    ("webdataset", "any_loader"),
    ("ffcv.loader", "any_loader"),
    ("torchdata.nodes", "any_loader"),
    ("nvidia.dali.plugin.pytorch", "any_loader"),
    ("grain", "any_loader"),
)
# Those that need no framework.
_ALWAYS = ("logs", "saving", "collector", "loops")

_installed = False


def install() -> None:
    """Watch the frameworks that the program uses, those that it imports later among them.

    Does nothing where phases are not wanted (``phases=false``), and nothing twice.
    """
    global _installed
    if _installed or _core.option("phases") in ("false", "off", "0"):
        return
    _installed = True
    for name in _ALWAYS:
        _begin(name, None)
    for framework, name in _ADAPTERS:
        _imports.watch(framework, _beginner(name))


def is_installed() -> bool:
    """Tell whether the frameworks are watched."""
    return _installed


def remove() -> None:
    """Put everything back."""
    global _installed
    _installed = False
    for framework, _ in _ADAPTERS:
        _imports.forget(framework)
    for name in {*_ALWAYS, *(name for _, name in _ADAPTERS)}:
        _end(name)
    patch = sys.modules.get(f"{__name__}._patch")
    if patch is not None:
        patch.restore()


def _end(name: str) -> None:
    """Let an adapter put back what is not replaced attributes."""
    undo = getattr(sys.modules.get(f"{__name__}.{name}"), "remove", None)
    if undo is not None:
        try:
            undo()
        except Exception as error:
            _notes.note_once(f"{name} could not be removed: {type(error).__name__}: {error}")


def _beginner(name: str) -> Callable[[object], None]:
    return lambda module: _begin(name, module)


def _begin(name: str, module: object) -> None:
    try:
        # Not importlib: the program may never import it, and would find it imported.
        __import__(f"{__name__}.{name}")
        adapter: Any = sys.modules[f"{__name__}.{name}"]
        adapter.install(module)
    except Exception as error:
        what = getattr(module, "__name__", name)
        _notes.note_once(f"{what} is not watched: {type(error).__name__}: {error}")
