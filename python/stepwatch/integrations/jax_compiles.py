"""What JAX compiles, how long that takes, and why it is done again.

``jax.monitoring`` tells when tracing, lowering and the back end begin and end. What happens within
one of these belongs to it. Everything that is compiled while a watched function is called counts
for that function; at the end of such a call, and only then, its arguments are compared with those
it was compiled for before.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import weakref

from stepwatch import _core
from stepwatch.integrations import _notes, jax_signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

_PREFIX = "/jax/core/compile/"
_STAGES = {
    _PREFIX + "jaxpr_trace_duration": 1,
    _PREFIX + "jaxpr_to_mlir_module_duration": 2,
    _PREFIX + "backend_compile_duration": 3,
}
_CACHE_HIT = "/jax/compilation_cache/cache_hits"
_FROM_CACHE = "from the persistent cache"
_COMPILED = 12  # the table
_ROWS_MOST = 1024
_WAITING_MOST = 64

_section = _core.section("compile", "compile")


class _Function:
    """A function of the program that is compiled."""

    def __init__(self, name: str, key: tuple[object, ...], function: Any, information: Any) -> None:
        self.name = name
        self.information = information
        self.key = key
        self.parameters = jax_signature.parameters_of(function)
        code = code_of(function)
        own = code if code is not None and _core.jit_is_user_code(code) else None
        self.file = own.co_filename if own is not None else ""
        self.line = own.co_firstlineno if own is not None else 0
        self.compilations = 0
        self.signatures: list[jax_signature.Signature] = []
        self.objects: list[weakref.ref[Any]] = []


class _Stage:
    """A stretch of compiling: 1 trace, 2 lowering, 3 back end."""

    __slots__ = ("begin", "cached", "end", "stage")

    def __init__(self, stage: int, begin: int) -> None:
        self.stage = stage
        self.begin = begin
        self.end = 0
        self.cached = False


class _Thread(threading.local):
    def __init__(self) -> None:
        self.open: list[_Stage] = []
        # Of calls and operations that are not over: by number of the function, or by name.
        self.done: dict[int | str, list[_Stage]] = {}
        self.cached = False


_thread = _Thread()
_functions: dict[int, _Function] = {}
_by_name: dict[str, _Function] = {}
# (recording, name, reason) -> handle of the row, its values
_rows: dict[tuple[int, str, str], tuple[int, list[int]]] = {}
_monitoring: Any = None
_module: Any = None
_facts_are_told = False


def install(module: Any) -> None:
    """Listen to what jax tells."""
    global _monitoring, _module
    from importlib import import_module

    _module = module
    _monitoring = import_module("jax.monitoring")
    _monitoring.register_event_duration_secs_listener(_ended)
    begins = getattr(_monitoring, "register_scalar_listener", None)
    if begins is not None:
        begins(_began)
    _monitoring.register_event_listener(_happened)


def remove() -> None:
    """Listen no more; other listeners stay."""
    for name, listener in (
        ("unregister_event_duration_listener", _ended),
        ("unregister_scalar_listener", _began),
        ("unregister_event_listener", _happened),
    ):
        unregister = getattr(_monitoring, name, None)
        try:
            if unregister is not None:
                unregister(listener)
        except (AssertionError, ValueError):
            pass  # Somebody has cleared all listeners.


def learn(number: int, name: str, key: tuple[object, ...], function: Any, information: Any) -> None:
    """There is a function of this number."""
    _functions[number] = _by_name[name] = _Function(name, key, function, information)


def key_of(name: str) -> tuple[object, ...] | None:
    """Return the key of the newest function of this name."""
    function = _by_name.get(name)
    return function.key if function is not None else None


def plain_name(name: str) -> str:
    """``jit(train_step)`` and ``jit_train_step`` are called ``train_step``."""
    if name.startswith("jit(") and name.endswith(")"):
        return name[4:-1]
    return name[4:] if name.startswith("jit_") else name


def code_of(function: Any) -> CodeType | None:
    """Return the code of what was decorated."""
    with contextlib.suppress(ValueError):
        function = inspect.unwrap(function)
    function = getattr(function, "func", function)  # functools.partial
    function = getattr(function, "__func__", function)
    code: CodeType | None = getattr(function, "__code__", None)
    return code


# Listeners ---------------------------------------------------------------------------------------


def _began(event: str, _: float, **__: Any) -> None:
    stage = _STAGES.get(event)
    if stage is None:
        return
    if not _thread.open:
        _section.__enter__()
    _thread.open.append(_Stage(stage, _core.now()))


def _ended(event: str, duration: float, **details: Any) -> None:
    stage = _STAGES.get(event)
    if stage is None:
        return
    is_open = _thread.open
    done: _Stage
    if is_open:
        done = is_open.pop()
        if is_open:
            return  # Part of another one.
        _section.__exit__(None, None, None)
    else:
        done = _Stage(stage, 0)
    if not _core.is_recording():
        return
    try:
        done.end = _core.now()
        if not done.begin:  # This version of jax does not tell when it begins.
            done.begin = done.end - int(duration * _core.ticks_per_second())
            _core.charge("compile", done.begin)
        done.cached, _thread.cached = _thread.cached and stage == 3, False
        _keep(done, plain_name(str(details.get("fun_name", "") or "(unnamed)")))
    except Exception as error:
        _notes.note_once(f"a compilation is not recorded: {type(error).__name__}: {error}")


def _happened(event: str, **_: Any) -> None:
    if event == _CACHE_HIT:
        _thread.cached = True


def _keep(done: _Stage, name: str) -> None:
    """Keep the stage for the end of the call that it is part of."""
    number = _core.jit_running()
    if not number and name not in _thread.done and len(_thread.done) >= _WAITING_MOST:
        _thread.done.clear()
    of_one = _thread.done.setdefault(number or name, [])
    of_one.append(done)
    if not number:
        del of_one[:-_WAITING_MOST]  # What is only traced, as by eval_shape, never ends.
    if not number and done.stage == 3:
        # An operation outside any function, or a function compiled ahead of time.
        function = _by_name.get(name)
        reason = "compiled ahead of time" if function is not None else "an operation outside jit"
        if function is None:
            site = _core.user_site()
            function = _Function(name, (name,), None, None)
            if site is not None:
                function.file, function.line = site[0], site[1]
            if len(_by_name) < _ROWS_MOST:
                _operations.setdefault(name, function)
            function = _operations.get(name, function)
        del _thread.done[name]
        _put(function, reason, of_one)
    _tell_facts()


_operations: dict[str, _Function] = {}


def call_is_over(number: int, compiled: Any, args: Any, kwargs: Any) -> None:
    """A call of a watched function is over in which something was compiled."""
    try:
        stages = _thread.done.pop(number, None)
        function = _functions.get(number)
        if not stages or function is None:
            return
        if not function.file:
            site = _core.user_site()
            if site is not None:
                function.file, function.line = site[0], site[1]
        _put(function, _reason(function, compiled, args, kwargs), stages)
    except Exception as error:
        _notes.note_once(f"a compilation is not recorded: {type(error).__name__}: {error}")


def _reason(function: _Function, compiled: Any, args: Any, kwargs: Any) -> str:
    information = getattr(compiled, "_jit_info", None) or function.information
    signature = jax_signature.Signature(_module, function.parameters, information, args, kwargs)
    known = any(reference() is compiled for reference in function.objects)
    if not known:
        function.objects = [r for r in function.objects if r() is not None][-15:]
        function.objects.append(weakref.ref(compiled))
    reason = signature.difference(function.signatures)
    if reason is None:
        reason = (
            "the same arguments as before: jax's cache was cleared, or a setting has changed"
            if known
            else "the same arguments as before: jit was given a new function object"
        )
    else:
        function.signatures = [*function.signatures[-15:], signature]
    return reason


# Rows and records --------------------------------------------------------------------------------


def _put(function: _Function, reason: str, stages: list[_Stage]) -> None:
    made = sum(stage.stage == 3 for stage in stages)
    if any(stage.cached for stage in stages):
        reason = f"{reason} ({_FROM_CACHE})"
    again = function.compilations > 0
    ticks = [0, 0, 0, 0]
    for stage in stages:
        _core.put_compile(
            function.name,
            reason,
            stage.stage,
            stage.begin,
            stage.end,
            function.compilations + 1,
            function.file,
            function.line,
        )
        ticks[stage.stage] += stage.end - stage.begin
    ticks[0] = sum(ticks)
    function.compilations += made
    recording = _core.jit_recording()
    key = (recording, function.name, reason)
    if key not in _rows and len(_rows) >= _ROWS_MOST:
        reason = "(more)"
        key = (recording, function.name, reason)
    handle, values = _rows.get(key, (0, [0, 0, 0, 0, 0]))
    values = [old + new for old, new in zip(values, [made, *ticks])]
    keys = (function.name, reason, function.file, function.line)
    handle = _core.put_row(handle, _COMPILED, int(again), keys, tuple(values))[0]
    _rows[key] = (handle, values)


def _tell_facts() -> None:
    """Say which devices there are, once jax itself has asked: asking starts the back end."""
    global _facts_are_told
    if _facts_are_told:
        return
    _facts_are_told = True
    _core.fact("jax", str(getattr(_module, "__version__", "")))
    _core.fact("jax_backend", str(_module.default_backend()))
    kinds = [str(getattr(device, "device_kind", "")) for device in _module.local_devices()]
    _core.fact("jax_devices", ", ".join(f"{kinds.count(k)} x {k}" for k in sorted(set(kinds))))
