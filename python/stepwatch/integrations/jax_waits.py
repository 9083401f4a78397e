"""Where a JAX program waits for what is still being computed, and what it copies to a device.

Calls of compiled functions come back before their results are there. The first thing that needs a
value waits: ``float(loss)``, ``np.asarray(x)``, ``x.block_until_ready()``. Each such call gets its
own place in the report, by the line of the program that made it. Nothing here waits by itself.
"""

from __future__ import annotations

import sys

from stepwatch import _core
from stepwatch.integrations import _patch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Methods of arrays that need the value, and what they are called in the report.
_METHODS = {
    "block_until_ready": "Array.block_until_ready",
    "item": "Array.item",
    "tolist": "Array.tolist",
    "tobytes": "Array.tobytes",
    "__array__": "numpy.asarray(Array)",
    "__float__": "float(Array)",
    "__int__": "int(Array)",
    "__bool__": "bool(Array)",
    "__index__": "int(Array)",
    "__complex__": "complex(Array)",
    "__format__": "format(Array)",
    "__str__": "str(Array)",
    "__repr__": "repr(Array)",
}
_array: Any = None
_block: Callable[[Any], Any] | None = None
_clean: Callable[[], bool] | None = None


def prepare(module: Any, clean: Callable[[], bool] | None) -> None:
    """Take from jax what is needed, before anything of it is replaced."""
    global _array, _block, _clean
    from importlib import import_module

    _clean = clean
    _block = getattr(module, "block_until_ready", None)
    _array = getattr(import_module("jax._src.array"), "ArrayImpl", None)


def install(module: Any) -> None:
    """Put plain functions in the place of those that wait."""
    for name, title in _METHODS.items():
        if _array is not None:
            _patch.replace(_array, name, _waiting(title, name == "block_until_ready"))
    if _array is not None:
        _core.jit_watch_buffers(_array)
    for name in ("block_until_ready", "device_get"):
        _replace(module, name, _waiting(f"jax.{name}"))
    _replace(module, "device_put", _putting)


def remove() -> None:
    """Let buffers be; functions go back with all others."""
    _core.jit_watch_buffers(None)


def block(result: Any) -> None:
    """Wait for a result, as ``stepwatch.jax.profile(sync=True)`` asks for."""
    block = _block or getattr(sys.modules.get("jax"), "block_until_ready", None)
    if block is not None:
        block(result)


def _replace(module: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
    if _patch.replace(module, name, make):
        # Where it is found: pickles name it by that.
        getattr(module, name).__module__ = module.__name__


def _waiting(
    title: str, by_equinox: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Time a call that waits. Equinox waits in every call of what it has compiled, to see errors:

    that is the call itself, and nothing that the program could leave out.
    """
    begin, end = _core.jit_wait_begin, _core.jit_wait_end
    caller = sys._getframe

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def wait(*args: Any, **kwargs: Any) -> Any:
            if by_equinox and caller(1).f_globals.get("__name__") == "equinox._jit":
                return original(*args, **kwargs)
            began = begin(title)
            if not began:
                return original(*args, **kwargs)
            try:
                return original(*args, **kwargs)
            finally:
                end(began)

        return wait

    return make


def _putting(original: Callable[..., Any]) -> Callable[..., Any]:
    begin, end = _core.jit_put_begin, _core.jit_put_end

    def device_put(x: Any, *args: Any, **kwargs: Any) -> Any:
        if _clean is not None and not _clean():
            return original(x, *args, **kwargs)  # It is traced, not done.
        began = begin("jax.device_put")
        if not began:
            return original(x, *args, **kwargs)
        size = 0
        try:
            size = _size(x)
            return original(x, *args, **kwargs)
        finally:
            end(began, size)

    return device_put


def _size(tree: Any) -> int:
    """Add up the bytes of what lies in tuples, lists and dicts; of other trees it is not known."""
    size = getattr(tree, "nbytes", None)
    if isinstance(size, int):
        return size
    if isinstance(tree, (tuple, list)):
        return sum(_size(leaf) for leaf in tree)
    if isinstance(tree, dict):
        return sum(_size(leaf) for leaf in tree.values())
    return 0
