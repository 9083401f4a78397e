"""JAX: functions that are to be seen.

Under ``stepwatch run`` nothing of this is needed: whatever the program compiles is seen. It is for
programs that start a recording themselves, for names, and for waiting on results.

>>> import stepwatch.jax
>>> step = stepwatch.jax.profile(jax.jit(train_step))  # doctest: +SKIP
"""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys

from stepwatch import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    _F = TypeVar("_F", bound=Callable[..., Any])

__all__ = ["profile"]

_ATTRIBUTE = "__stepwatch_jax__"
# Of functions that cannot carry an attribute; the oldest give way.
_kept: dict[Any, Any] = {}
_KEPT_MOST = 1024


def profile(fn: _F, name: str | None = None, sync: bool = False) -> _F:
    """Record the calls of a function as a section, and compiling it apart from running it.

    A function that jax has compiled comes back as the same object; a plain function comes back in
    a wrapper, and always in the same one, so that nothing is compiled again. Use it inside or
    outside of ``jax.jit``. ``sync=True`` waits for the result before the section ends, which gives
    the time of the computation but keeps the program from going on meanwhile.
    """
    if not callable(fn):
        raise TypeError(f"stepwatch.jax.profile takes a function, not {type(fn).__name__!r}")
    if os.environ.get("STEPWATCH_ENABLED", "").lower() in ("0", "false", "off", "no"):
        return fn
    compiled = _compiled_in(fn)
    if compiled:
        for one in compiled:
            _watch(one, name, sync)
        return fn
    for one in _compiled_of(fn):
        _watch(one, name, sync)
    wrapper: _F = _wrapper(fn, name, sync)
    return wrapper


def _hooks() -> Any:
    """Return the adapter, which watches compilations and waits from now on."""
    from stepwatch.integrations import jax_hooks

    jax_hooks.install(sys.modules["jax"])
    return jax_hooks


def _is_compiled(value: Any) -> bool:
    return type(value).__name__ in ("PjitFunction", "PmapFunction") and hasattr(value, "lower")


def _compiled_in(fn: Any) -> list[Any]:
    """Return the compiled functions behind what jax.jit, equinox.filter_jit or nnx.jit made."""
    if _is_compiled(fn):
        return [fn]
    found = [getattr(fn, name, None) for name in ("_cached", "jitted_fn")]
    return [value for value in found if _is_compiled(value)]


def _compiled_of(fn: Any) -> list[Any]:
    """Return what was compiled of this function before anybody watched."""
    if "jax" not in sys.modules:
        return []
    return [
        value
        for value in gc.get_objects()
        if _is_compiled(value) and getattr(value, "__wrapped__", None) is fn
    ]


def _watch(compiled: Any, name: str | None, sync: bool) -> None:
    number = _hooks().watch(compiled, name, asked=True)
    if not number:
        from stepwatch.integrations import _notes

        _notes.note_once("calls of compiled functions cannot be seen with this version of jax")
    elif sync:
        _core.jit_sync(number, True)


def _wrapper(fn: Any, name: str | None, sync: bool) -> Any:
    # Decorators copy attributes; what they copied speaks of another function.
    known = getattr(fn, "__dict__", {}).get(_ATTRIBUTE)
    if known is not None and known.__stepwatch_function__ is fn:
        return _asked_again(known, name, sync)
    inner = getattr(fn, "__stepwatch_function__", None)
    if inner is not None and getattr(inner, "__dict__", {}).get(_ATTRIBUTE) is fn:
        return _asked_again(fn, name, sync)  # It is a wrapper itself.
    try:
        if fn in _kept:
            return _asked_again(_kept[fn], name, sync)
    except TypeError:
        pass  # It has no hash.
    made = _wrap(fn, name or str(getattr(fn, "__name__", type(fn).__name__)), sync)
    try:
        setattr(fn, _ATTRIBUTE, made)
    except (AttributeError, TypeError, ValueError):
        _keep(fn, made)
    return made


def _asked_again(wrapper: Any, name: str | None, sync: bool) -> Any:
    """Return the wrapper, which goes by what was asked for last: it stays the object that it is."""
    settings = wrapper.__stepwatch_settings__
    if name:
        settings.section = _core.section(name)
    settings.sync = settings.sync or sync
    return wrapper


def _keep(fn: Any, made: Any) -> None:
    try:
        _kept[fn] = made
    except TypeError:
        return
    if len(_kept) > _KEPT_MOST:
        del _kept[next(iter(_kept))]


class _Settings:
    """What a wrapper does; may change between calls."""

    __slots__ = ("section", "sync")

    def __init__(self, section: Any, sync: bool) -> None:
        self.section = section
        self.sync = sync


def _wrap(fn: Any, name: str, sync: bool) -> Any:
    settings = _Settings(_core.section(name), sync)
    if "jax" in sys.modules:
        _hooks()

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if is_tracing():
            return fn(*args, **kwargs)  # It is being compiled, which is counted as such.
        with settings.section:
            result = fn(*args, **kwargs)
            if settings.sync:
                wait(result)
        return result

    wrapper.__stepwatch_function__ = fn  # type: ignore[attr-defined]
    wrapper.__stepwatch_settings__ = settings  # type: ignore[attr-defined]
    wrapper.__dict__.pop(_ATTRIBUTE, None)
    return wrapper


def is_tracing() -> bool:
    """Tell whether jax is looking what there is to compile, so that a call runs nothing."""
    # The program may import jax later.
    clean = getattr(sys.modules.get("jax._src.core"), "trace_state_clean", None)
    return clean is not None and not clean()


def wait(result: Any) -> None:
    """Wait for all arrays in a result, where there is jax."""
    from stepwatch.integrations import jax_waits

    # Whoever uses the result gets what goes wrong where it would have come.
    with contextlib.suppress(Exception):
        jax_waits.block(result)
