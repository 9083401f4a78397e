"""How long the calls of a function take."""

from __future__ import annotations

import inspect
import sys
from array import array

from stepwatch import _core
from stepwatch._sweeps import _state
from stepwatch._sweeps._result import Measurement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def benchmark_callable(
    f: Callable[..., Any], /, *args: Any, number: int = 100, warmup: int = 3, **kwargs: Any
) -> Measurement:
    """Call ``f(*args, **kwargs)`` ``number`` times, each timed by itself.

    >>> stepwatch.benchmark_callable(tokenize, text)["avg_processing_time"]
    0.000213

    ``warmup`` calls before them do not count. Where torch has an accelerator, or JAX gave the
    result, a call lasts until the device has done it. ``throughput`` is calls a second. A recording
    gets one section for all calls, ``benchmark_callable``.
    """
    times, before, grown = measure_calls(f, args, kwargs, number, warmup, "benchmark_callable")
    return _result(_name(f), times, before, grown)


def measure_calls(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    number: int,
    warmup: int,
    caller: str,
) -> tuple[array[float], array[float], int]:
    """Return the seconds of each call, of those before them, and what memory grew by."""
    _state.check_count("number", number)
    _state.check_count("warmup", warmup, 0)
    if not callable(f):
        raise TypeError(f"{caller} takes a function, not {type(f).__name__}")
    if inspect.iscoroutinefunction(f):
        raise TypeError(f"{caller} takes a plain function: calling this one gives a coroutine")
    times = array("d", bytes(8 * number))
    before = array("d", bytes(8 * warmup))
    # Random states are the function's own affair: it may be called for what it draws.
    _core.train_aside(True)
    try:
        with _core.section(caller):
            waits = _Waits()
            if warmup:
                _core.time_calls(f, args, kwargs, waits.find, before)
            grown = _core.resident([0])
            _core.time_calls(f, args, kwargs, waits.wait if warmup else waits.find, times)
            grown = _core.resident([0]) - grown
    finally:
        _core.train_aside(False)
    return times, before, grown


def _name(f: Callable[..., Any]) -> str:
    name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    return str(name or type(f).__name__)


class _Waits:
    """Waits for what a call has set going; finds out from the first calls what that is."""

    def __init__(self) -> None:
        self._jax = False

    def find(self, result: Any) -> None:
        """Wait for everything that there may be."""
        jax: Any = sys.modules.get("jax")
        if jax is not None and hasattr(jax, "block_until_ready"):
            leaves = jax.tree_util.tree_leaves(result)
            self._jax = self._jax or any(hasattr(leaf, "block_until_ready") for leaf in leaves)
            jax.block_until_ready(result)
        synchronize = _state.waiter(_state.torch_or_none())
        if synchronize is not None:
            synchronize()

    @property
    def wait(self) -> Callable[[Any], object] | None:
        """What waits for a result; None: it is there when the call returns."""
        synchronize = _state.waiter(_state.torch_or_none())
        if not self._jax:
            return None if synchronize is None else lambda _: synchronize()
        block: Callable[[Any], object] = sys.modules["jax"].block_until_ready
        if synchronize is None:
            return block

        def both(result: Any) -> None:
            block(result)
            synchronize()

        return both


def _result(name: str, times: array[float], before: array[float], grown: int) -> Measurement:
    numbers = _core.summarize(times)
    count, total = numbers["count"], numbers["total"]
    rate = count / total if total else None
    memory = max(grown, 0) / count
    return Measurement(
        f"{name}: {count} calls, times in seconds",
        {
            "avg_processing_time": numbers["mean"],
            "min_processing_time": numbers["min"],
            "max_processing_time": numbers["max"],
            "std_processing_time": numbers["std"],
            "p50_processing_time": numbers["p50"],
            "p99_processing_time": numbers["p99"],
            "first_processing_time": before[0] if before else None,
            "total_time": total,
            "throughput": rate,
            "samples_per_second": rate,
            "calls_per_second": rate,
            "total_samples_profiled": count,
            "warmup_calls": len(before),
            "avg_memory_usage": memory / 1048576,
            "avg_memory_usage_bytes": round(memory),
        },
    )
