"""Guide 3: accumulated times of the operations of a training loop, on the console and in W&B.

Every time is kept by a :class:`stepwatch.Profiler`; here is what the guide calls it, and how it is
printed.

>>> from stepwatch.compat.training_profiler import get_profiler, profile_operation
>>> @profile_operation("square")
... def square(x):
...     return x * x
>>> [square(n) for n in range(3)]
[0, 1, 4]
>>> get_profiler().get_summary()["square"]["count"]
3
"""

from __future__ import annotations

import functools
import operator
import time

import stepwatch
from stepwatch.compat import _switches, _training_jax, _wandb
from stepwatch.compat._console import say
from stepwatch.compat._training_loader import profiled
from stepwatch.integrations._notes import note_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    _T = TypeVar("_T")

__all__ = [
    "TrainingProfiler",
    "get_profiler",
    "log_profiling_metrics",
    "profile_data_loader",
    "profile_jax_loss_fn",
    "profile_make_step",
    "profile_operation",
    "profile_training_loop",
]

DATA = "data_batch_production"
LOSS = "loss_fn_computation"
STEP = "make_step_total"
TORCH_STEP = "training_step"
UPDATE = "model_update"
VALIDATION = "validation"
COMPILATION = "compilation"

# No timer of ours began before.
_LOADED = time.perf_counter()

# What kind of work the operations of the guide are; all others are the program's own.
_CATEGORIES = {
    DATA: "data_loading",
    LOSS: "loss",
    "loss_computation": "loss",
    STEP: "training_step",
    TORCH_STEP: "training_step",
    UPDATE: "optimizer",
    VALIDATION: "validation",
    COMPILATION: "compile",
}


def checked_every(value: Any) -> int | None:
    """Return how many steps lie between two reports, or say what is wrong with it."""
    if value is None:
        return None
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(
            f"log_every must be a whole number of steps, 0 or None for never, not {value!r}"
        ) from None


class TrainingProfiler:
    """Times of operations by name: how often, how long in all, how long on average.

    ``log_every`` is how many calls of :meth:`step` lie between two reports; 0 or None: none by
    itself. ``units=True`` adds to each line the time in a unit that suits it.
    """

    def __init__(
        self, log_to_wandb: bool = True, log_every: int | None = 100, *, units: bool = False
    ) -> None:
        """Begin with no operation and step 0."""
        self.log_to_wandb = log_to_wandb
        self.log_every = log_every
        self.units = units
        self.step_count = 0
        self.native = stepwatch.Profiler("training", enabled=_switches.enabled(default=True))
        # Names in the order in which they came up, each with how it is measured.
        self._operations: dict[str, str] = {}
        # Calls that only told JAX what to compile: by operation.
        self._traced: dict[str, int] = {}
        self._switched_off: dict[str, str] = {}
        self._told: set[str] = set()

    def __repr__(self) -> str:
        """Say what it is and what it has."""
        return (
            f"<TrainingProfiler: {len(self.get_summary())} operations, step {self.step_count}, "
            f"log_every={self.log_every}, log_to_wandb={self.log_to_wandb}>"
        )

    @property
    def enabled(self) -> bool:
        """Whether anything is measured; can be set at any time."""
        return bool(self.native.enabled)

    @enabled.setter
    def enabled(self, value: bool) -> None:
        self.native.enabled = value

    @property
    def log_every(self) -> int | None:
        """How many steps lie between two reports; 0 or None: none by itself."""
        return self._log_every

    @log_every.setter
    def log_every(self, value: int | None) -> None:
        self._log_every = checked_every(value)

    @property
    def timers(self) -> dict[str, dict[str, float]]:
        """The same as :meth:`get_summary`."""
        return self.get_summary()

    # Measuring -----------------------------------------------------------------------------------

    def operation(self, name: str, how: str = "section") -> Any:
        """Return the section of an operation, to be used by ``with``; it is known from now on."""
        self._operations.setdefault(name, how)
        return self.native.section(name, category=_CATEGORIES.get(name, "operation"))

    def start_timer(self, name: str) -> float:
        """Return what :meth:`end_timer` needs: the time in seconds, of a clock that never jumps."""
        if name not in self._operations:
            self.operation(name, "timer")
        return time.perf_counter()

    def end_timer(self, name: str, start_time: float) -> None:
        """Count one call of the operation, from ``start_time`` to now."""
        end = time.perf_counter()
        if isinstance(start_time, bool) or not isinstance(start_time, (int, float)):
            note_once(
                f"end_timer({name!r}) takes what start_timer returned, not "
                f"{type(start_time).__name__}; nothing is counted"
            )
            return
        if not _LOADED <= start_time <= end:
            note_once(
                f"end_timer({name!r}) got a time that is not of start_timer; nothing is counted"
            )
            return
        if name not in self._operations:
            self.operation(name, "timer")
        self.native.add(name, end - start_time)

    def time_operation(self, name: str) -> Callable[[_T], _T]:
        """Return a decorator that times each call: functions, methods, async, generators."""
        self.operation(name, "decorator")
        decorator: Callable[[_T], _T] = self.native.profile(name)
        return decorator

    def profile_data_loading(self, loader: Any) -> Any:
        """Return a loader that times each batch as ``data_batch_production``."""
        self.operation(DATA, "loader")
        return profiled(loader, self.native, DATA)

    def profile_loss(self, loss_fn: _T, operation_name: str = LOSS) -> _T:
        """Return the function timed until its results are there; always the same one."""
        self._operations.setdefault(operation_name, "loss")
        return _training_jax.profiled_loss(self, loss_fn, operation_name)

    def profile_make_step(self, make_step: _T, probe_every: int = 0) -> _T:
        """Return the step timed until its results are there, with the loss within; the same one."""
        # In the order of the guide's own lines.
        self._operations.setdefault(LOSS, "loss")
        self._operations.setdefault(STEP, "step")
        return _training_jax.profiled_step(self, make_step, probe_every)

    def traced(self, name: str) -> None:
        """Count a call that ran nothing: JAX looked what there is to compile."""
        self._traced[name] = self._traced.get(name, 0) + 1

    def switched_off(self, who: str, why: str) -> None:
        """Remember who was told to measure nothing, to say so when somebody asks."""
        self._switched_off[who] = f"{who} was called with {why}"

    def switched_on(self, who: str) -> None:
        """Forget that it was told to measure nothing."""
        self._switched_off.pop(who, None)

    # Reading -------------------------------------------------------------------------------------

    def get_summary(self) -> dict[str, dict[str, float]]:
        """Return ``total_time``, ``count`` and ``avg_time`` (seconds) of each operation, copied."""
        rows = {row["name"]: row for row in self.native.rows() if row["calls"]}
        names = [name for name in self._operations if name in rows]
        names += [name for name in rows if name not in self._operations]
        found = {
            name: _figures(rows[name]["total_ns"] / 1e9, rows[name]["calls"]) for name in names
        }
        update = _update_of(found)
        if update is not None:
            found[UPDATE] = update
        return found

    def reset(self) -> None:
        """Forget all times; step 0. What is decorated stays so."""
        self.native.reset()
        self.native.enabled = _switches.enabled(default=True)
        self.step_count = 0
        self._traced.clear()
        self._switched_off.clear()
        self._told.clear()

    # Reporting -----------------------------------------------------------------------------------

    def step(self, log_every: int | None = None) -> int:
        """Count a step, and report after each ``log_every`` of them; return its number."""
        self.step_count += 1
        every = self.log_every if log_every is None else checked_every(log_every)
        if every and every > 0 and self.step_count % every == 0:
            self.log_metrics(self.step_count)
        return self.step_count

    def log_metrics(self, step: int | None = None) -> None:
        """Print all operations, and send them to the W&B run that is active, if there is one."""
        if not self.enabled:
            note_once("profiling is off, so there are no profiling metrics: " + self._why_off())
            return
        number = self.step_count if step is None else step
        summary = self.get_summary()
        lines = [f"\n--- Profiling Metrics (Step {number}) ---"]
        lines += [self._line(name, figures) for name, figures in summary.items()]
        lines += self._missing_lines(summary)
        say("\n".join(lines))
        if self.log_to_wandb and summary:
            _wandb.log_profiling(
                {
                    f"profiling/{name}_{key}": figures[key]
                    for name, figures in summary.items()
                    for key in ("avg_time", "total_time", "count")
                },
                number if step is not None or self.step_count else None,
            )

    def explain(self, *operations: str) -> list[str]:
        """Say why operations are missing: those named, or all that were announced and not measured.

        Profiling may be off, the operation may not have been called, or W&B may have no run.
        """
        found = []
        if not self.enabled:
            found.append(f"profiling is off: {self._why_off()}")
        found += [f"{why}; enable_profiling=True measures" for why in self._switched_off.values()]
        measured = self.get_summary()
        # What is off measures nothing, whatever was called.
        announced = tuple(self._operations) if self.enabled else ()
        for name in operations or announced:
            if name not in measured:
                found.append(f"{name}: {self._why_missing(name, measured)}")
        if self.log_to_wandb:
            why = _wandb.why_not()
            if why is not None:
                found.append(why)
        return found

    def _line(self, name: str, figures: dict[str, float]) -> str:
        average, total, count = (figures[key] for key in ("avg_time", "total_time", "count"))
        line = f"{name}: avg={average:.4f}s, total={total:.2f}s, count={count}"
        return f"{line} ({_readable(average)} each)" if self.units else line

    def _missing_lines(self, summary: dict[str, Any]) -> list[str]:
        """Return a line for each operation that JAX hides, and once for what was not called."""
        hidden = [name for name in self._traced if name not in summary]
        lines = [f"{name}: {self._why_missing(name, summary)}" for name in hidden]
        if not summary and not lines:
            why = "; ".join(self._switched_off.values()) or "no operation was called"
            lines.append(f"nothing was measured: {why}")
        silent = [
            name
            for name, how in self._operations.items()
            if name not in summary
            and name not in self._traced
            and name not in self._told
            # Whether a step calls the loss as a function is the step's affair.
            and how != "loss"
        ]
        if silent:
            self._told.update(silent)
            lines.append(f"not called so far: {', '.join(silent)}")
        return lines

    def _why_off(self) -> str:
        if _switches.environment() is False:
            return f"{_switches.SWITCH} says so in the environment"
        return "profiler.enabled is False"

    def _why_missing(self, name: str, measured: dict[str, Any]) -> str:
        if name in self._traced:
            times = _times(self._traced[name])
            return (
                f"not measured, it runs inside a compiled function ({times} traced); "
                "profile_make_step(make_step, probe_every=N) measures it apart"
            )
        how = self._operations.get(name)
        if how == "timer":
            return "start_timer was called, end_timer never"
        if how is not None:
            return "never called"
        others = ", ".join(measured) or "nothing"
        return f"nothing is timed under this name; measured: {others}"


def _figures(total: float, count: int) -> dict[str, float]:
    return {"total_time": total, "count": count, "avg_time": total / count}


def _update_of(found: dict[str, dict[str, float]]) -> dict[str, float] | None:
    """Return what of the steps was not the loss, where both are known of the same steps."""
    if UPDATE in found or STEP not in found or LOSS not in found:
        return None
    step, loss = found[STEP], found[LOSS]
    rest = step["total_time"] - loss["avg_time"] * step["count"]
    return _figures(rest, int(step["count"])) if rest > 0 else None


def _readable(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


# The module's own profiler ---------------------------------------------------------------------

_profiler: TrainingProfiler | None = None


def get_profiler() -> TrainingProfiler:
    """Return the profiler that all functions of this module use: always the same one."""
    global _profiler
    if _profiler is None:
        _profiler = TrainingProfiler()
    return _profiler


def profile_operation(operation_name: str) -> Callable[[_T], _T]:
    """Return a decorator that times each call of a function under this name."""
    return get_profiler().time_operation(operation_name)


def log_profiling_metrics(step: int | None = None) -> None:
    """Print the metrics and send them to W&B; without a step, that of the profiler."""
    get_profiler().log_metrics(step)


def profile_data_loader(data_loader: Any) -> Any:
    """Return a loader that times each batch as ``data_batch_production``; the other stays as is."""
    return get_profiler().profile_data_loading(data_loader)


def profile_jax_loss_fn(loss_fn: _T, operation_name: str = "loss_computation") -> _T:
    """Return the loss function timed until its results are there, always in the same wrapper."""
    return get_profiler().profile_loss(loss_fn, operation_name)


def profile_make_step(make_step_fn: _T, probe_every: int = 0) -> _T:
    """Return the step timed as ``make_step_total``, and the loss in it as ``loss_fn_computation``.

    A loss that is compiled as part of the step cannot be timed from outside. ``probe_every=N``
    calls it by itself after each N-th step, outside of the step's time, and times that.
    """
    return get_profiler().profile_make_step(make_step_fn, probe_every)


def profile_training_loop(
    training_fn: Callable[..., _T], log_every: int = 100
) -> Callable[..., _T | Iterator[Any]]:
    """Return the function so that the profiler begins anew, and reports when it is through.

    When it returns an iterator (as a generator function does), each item is a step: there is a
    report after each ``log_every`` items, and at the end. Anything else comes back as it is; an
    ``async`` function is through when it has been awaited.
    """
    checked_every(log_every)

    @functools.wraps(training_fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        profiler = get_profiler()
        profiler.reset()
        result = training_fn(*args, **kwargs)
        if hasattr(result, "__next__"):
            return _logged(profiler, result, log_every)
        if hasattr(result, "__await__"):
            return _awaited(profiler, result)
        profiler.log_metrics()
        return result

    return wrapper


async def _awaited(profiler: TrainingProfiler, result: Any) -> Any:
    value = await result
    profiler.log_metrics()
    return value


def _logged(profiler: TrainingProfiler, items: Any, log_every: int) -> Iterator[Any]:
    try:
        for item in items:
            yield item
            profiler.step(log_every)
    finally:
        if hasattr(items, "close"):
            items.close()
    if not log_every or log_every < 0 or not profiler.step_count or profiler.step_count % log_every:
        profiler.log_metrics()
