"""Tell when a module has been imported, without importing it."""

from __future__ import annotations

import sys

from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_waiting: dict[str, list[Callable[[Any], None]]] = {}


class _Finder:
    """Sees the modules that are waited for being imported, and lets the others find them."""

    # It calls nothing but what Python would call without it: profiles count that as Python's.
    @_core._between
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in _waiting:
            return None
        for finder in sys.meta_path:
            if finder is self:
                continue
            try:
                find = finder.find_spec
            except AttributeError:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _tell_after(spec)
                return spec
        return None


_finder = _Finder()


@_core._unseen
def _tell_after(spec: ModuleSpec) -> None:
    """Tell when the module of the spec has been run."""
    loader: Any = spec.loader
    run = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        # The loader is the module's to keep; it shall be as it was.
        del loader.exec_module
        run(module)
        _tell(spec.name)

    # Python leaves its own frames out of the traceback of what a module raises, by their file and
    # this name; ours lies between them and goes with them.
    exec_module.__code__ = exec_module.__code__.replace(
        co_filename="<frozen importlib._bootstrap>", co_name="_call_with_frames_removed"
    )
    # In the loader of this one module; its class is Python's own.
    loader.exec_module = exec_module


@_core._unseen
def _tell(name: str) -> None:
    for function in _waiting.pop(name, ()):
        _call(function, name)
    _unhook()


def _call(function: Callable[[Any], None], name: str) -> None:
    try:
        function(sys.modules[name])
    except Exception as error:
        print(f"stepwatch: {name} is not watched: {type(error).__name__}: {error}", file=sys.stderr)


def _unhook() -> None:
    if not _waiting and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def watch(name: str, function: Callable[[Any], None]) -> None:
    """Call the function with the module once that has been imported: now, or when it is."""
    module = sys.modules.get(name)
    # One that is half imported is told when it is whole; nobody sees when that is but its spec.
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        _call(function, name)
        return
    _waiting.setdefault(name, []).append(function)
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def forget(name: str) -> None:
    """Wait for this module no longer."""
    _waiting.pop(name, None)
    _unhook()
