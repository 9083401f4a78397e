"""Saving without torch: the functions of NumPy, pickle and others that write state to a file."""

from __future__ import annotations

from stepwatch import _core, _imports
from stepwatch.integrations import _patch
from stepwatch.integrations._timed import timed_after_validation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Modules, and in them the functions that save.
_LIBRARIES: dict[str, tuple[str, ...]] = {
    "numpy": ("save", "savez", "savez_compressed"),
    "pickle": ("dump",),
    "cloudpickle": ("dump",),
    "joblib": ("dump",),
    "safetensors.torch": ("save_file", "save_model"),
    "safetensors.numpy": ("save_file",),
    "safetensors.flax": ("save_file",),
}


def install(_: object = None) -> None:
    """Time what saves, in libraries too that are imported later."""
    for module in _LIBRARIES:
        _imports.watch(module, _watch_library)


def remove() -> None:
    """Forget nothing: what was put in place is taken back by ``_patch``."""


def _watch_library(module: Any) -> None:
    make = timed_after_validation(_core.section("checkpoint", "checkpoint"), None)
    for name in _LIBRARIES[module.__name__]:
        if hasattr(module, name):
            _patch.replace(module, name, make)
