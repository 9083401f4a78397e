"""Loss functions and steps of JAX programs, timed until their results are there.

Each function has one wrapper for good: a compiled function that is given another one compiles
again. While JAX traces, a call runs nothing and is not timed; the time that compiling takes is
taken out of the call in which it happens and counted as ``compilation``.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import time
from types import MethodType

import stepwatch
from stepwatch import jax as stepwatch_jax
from stepwatch.integrations._notes import note_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from stepwatch.compat.training_profiler import TrainingProfiler

    _T = TypeVar("_T")

_PREFIX = "/jax/core/compile/"
_STAGES = tuple(f"{_PREFIX}{stage}_duration" for stage in ("jaxpr_trace", "jaxpr_to_mlir_module"))
_BACK_END = f"{_PREFIX}backend_compile_duration"

_ATTRIBUTE = "__stepwatch_training__"
_KEPT_MOST = 1024
# Of functions that cannot carry an attribute: what they are known by, themselves, their wrapper.
_kept: dict[Any, tuple[Any, Any]] = {}

# Where the loss stands among the arguments of a step: (model, state, filter_spec, inputs,
# targets, loss_fn, opt, opt_state, key).
_LOSS_POSITION = 5
_LOSS_NAME = "loss_fn"


class _Compiling(threading.local):
    def __init__(self) -> None:
        self.depth = 0
        # Begin and end of each stage since the outermost call began, and how many were compiled.
        self.stages: list[tuple[float, float]] = []
        self.made: list[float] = []


_compiling = _Compiling()
_listens = False


def _listen() -> None:
    """Ask JAX to tell of compilations, once it is there."""
    global _listens
    if _listens or sys.modules.get("jax") is None:
        return
    _listens = True
    try:
        from jax import monitoring

        monitoring.register_event_duration_secs_listener(_compiled)
    except Exception as error:
        note_once(f"jax does not tell of compilations, which count as running: {error}")


def _compiled(event: str, duration: float, **_: Any) -> None:
    if not _compiling.depth or not event.startswith(_PREFIX):
        return
    end = time.perf_counter()
    begin = end - duration
    if event == _BACK_END:
        _compiling.made.append(begin)
    elif event not in _STAGES:
        return
    # What happened within this stage is part of it.
    while _compiling.stages and _compiling.stages[-1][0] >= begin:
        _compiling.stages.pop()
    _compiling.stages.append((begin, end))


class measured:  # noqa: N801
    """Time a block as one call of an operation, without the compiling in it."""

    def __init__(self, profiler: TrainingProfiler, name: str) -> None:
        """Take the name; the same object may not be used twice at once."""
        self._profiler = profiler
        self._name = name
        # A recording has it as a section too.
        self._section = stepwatch.section(name)
        self._begin = 0.0

    def __enter__(self) -> None:
        """Begin."""
        _listen()
        _compiling.depth += 1
        self._section.__enter__()
        self._begin = time.perf_counter()

    def __exit__(self, *exception: object) -> None:
        """End, and count."""
        seconds = time.perf_counter() - self._begin
        self._section.__exit__(*exception)  # type: ignore[arg-type]
        here = [stage for stage in _compiling.stages if stage[0] >= self._begin]
        spent = sum(end - begin for begin, end in here)
        native = self._profiler.native
        native.add(self._name, max(seconds - spent, 0.0))
        _compiling.depth -= 1
        if _compiling.depth:
            return
        if spent:
            self._profiler.operation("compilation", "compile")
            made = sum(begin >= self._begin for begin in _compiling.made)
            native.add("compilation", spent, count=max(made, 1))
        _compiling.stages.clear()
        _compiling.made.clear()


def profiled_loss(profiler: TrainingProfiler, loss_fn: _T, name: str) -> _T:
    """Return the loss function's wrapper of this profiler and name."""
    return _stable(profiler, loss_fn, name, 0, lambda: _timed(profiler, loss_fn, name))


def profiled_step(profiler: TrainingProfiler, make_step: _T, probe_every: int) -> _T:
    """Return the wrapper of a step, which hands on the loss function in its wrapper."""
    return _stable(
        profiler,
        make_step,
        "make_step_total",
        probe_every,
        lambda: _step(profiler, make_step, probe_every),
    )


def _timed(profiler: TrainingProfiler, function: Any, name: str) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if stepwatch_jax.is_tracing():
            profiler.traced(name)
            return function(*args, **kwargs)
        if not profiler.enabled:
            return function(*args, **kwargs)
        with measured(profiler, name):
            result = function(*args, **kwargs)
            stepwatch_jax.wait(result)
        return result

    return wrapper


def _step(profiler: TrainingProfiler, make_step: Any, probe_every: int) -> Any:
    timed = _timed(profiler, make_step, "make_step_total")
    position = _position(make_step)
    probe = _Probe(profiler, probe_every) if probe_every > 0 else None

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = args, kwargs
        loss_fn = kwargs.get(_LOSS_NAME)
        if loss_fn is None and len(args) > position:
            loss_fn = args[position]
        if _can_be_wrapped(loss_fn):
            inner = profiled_loss(profiler, loss_fn, "loss_fn_computation")
            if _LOSS_NAME in kwargs:
                kwargs = {**kwargs, _LOSS_NAME: inner}
            else:
                args = (*args[:position], inner, *args[position + 1 :])
        result = timed(*args, **kwargs)
        if probe is not None and profiler.enabled and not stepwatch_jax.is_tracing():
            probe.after(make_step, *given)
        return result

    return wrapper


def _position(make_step: Any) -> int:
    """Return where the step takes the loss function: by its name, or where the guide has it."""
    try:
        return list(inspect.signature(make_step).parameters).index(_LOSS_NAME)
    except (TypeError, ValueError):
        return _LOSS_POSITION


def _can_be_wrapped(loss_fn: Any) -> bool:
    """Tell whether a wrapper in its place changes nothing: it is no tree that holds arrays."""
    if not callable(loss_fn):
        return False
    trees = getattr(sys.modules.get("jax"), "tree_util", None)
    if trees is None:
        return True
    return not any(hasattr(leaf, "dtype") for leaf in trees.tree_leaves(loss_fn))


class _Probe:
    """Calls the loss function by itself every so often, compiled on its own."""

    def __init__(self, profiler: TrainingProfiler, every: int) -> None:
        self._profiler = profiler
        self._every = every
        self._steps = 0
        self._compiled: dict[int, tuple[Any, Any]] = {}

    def after(self, make_step: Any, args: Any, kwargs: Any) -> None:
        self._steps += 1
        if self._steps % self._every:
            return
        try:
            self._call(make_step, args, kwargs)
        except Exception as error:
            # Steps may have arguments that nobody knows, or give their memory away.
            note_once(f"loss_fn_computation cannot be measured apart: {error}")

    def _call(self, make_step: Any, args: Any, kwargs: Any) -> None:
        import equinox

        try:
            given = inspect.signature(make_step).bind(*args, **kwargs).arguments
            model, state, spec, inputs, targets, loss_fn, key = (
                given[name]
                for name in (
                    *("model", "state", "filter_spec", "inputs", "targets"),
                    *("loss_fn", "key"),
                )
            )
        except (KeyError, TypeError, ValueError):
            model, state, spec, inputs, targets, loss_fn, _, _, key = args
        compiled = self._compiled.get(id(loss_fn))
        if compiled is None:
            made = loss_fn if hasattr(loss_fn, "lower") else equinox.filter_jit(loss_fn)
            compiled = self._compiled[id(loss_fn)] = (loss_fn, made)
        params, static = equinox.partition(model, spec)
        with measured(self._profiler, "loss_fn_computation"):
            stepwatch_jax.wait(compiled[1](params, static, state, inputs, targets, key))


def _stable(
    profiler: TrainingProfiler, function: _T, name: str, every: int, make: Callable[[], Any]
) -> _T:
    """Return the wrapper that there is, or make it and keep it for good."""
    if not callable(function):
        raise TypeError(f"there is no call to time in a {type(function).__name__!r} object")
    if getattr(function, "__stepwatch_timed__", None) == (id(profiler), name):
        return function  # It is a wrapper itself.
    # A wrapper keeps its profiler, so that no other one has this number.
    key = (id(profiler), name, every)
    own = getattr(function, "__dict__", {}).get(_ATTRIBUTE)
    # Decorators copy attributes; what they copied speaks of another function.
    if own is not None and own[0] is function and key in own[1]:
        found: _T = own[1][key]
        return found
    # A bound method is another object each time it is asked for.
    who = (id(function.__self__), function.__func__) if isinstance(function, MethodType) else ()
    other = (who or id(function), *key)
    if other in _kept:
        kept: _T = _kept[other][1]
        return kept
    made: Any = functools.update_wrapper(make(), function)
    made.__dict__.pop(_ATTRIBUTE, None)
    made.__stepwatch_timed__ = (id(profiler), name)
    _keep(function, key, other, made)
    return made  # type: ignore[no-any-return]


def _keep(function: Any, key: tuple[int, str, int], other: Any, made: Any) -> None:
    if not isinstance(function, MethodType):
        own = getattr(function, "__dict__", {}).get(_ATTRIBUTE)
        wrappers = own[1] if own is not None and own[0] is function else {}
        try:
            setattr(function, _ATTRIBUTE, (function, {**wrappers, key: made}))
        except (AttributeError, TypeError, ValueError):
            pass
        else:
            return
    _kept[other] = (function, made)
    if len(_kept) > _KEPT_MOST:
        del _kept[next(iter(_kept))]
