"""The function profiler beside cProfile: what a call costs more, one Python.

functions.py RUN ROUNDS
"""

from __future__ import annotations

import cProfile
import sys
from time import perf_counter_ns
from typing import Any, Callable

import stepwatch
import timing

Work = Callable[[], object]
# Calls that fib(14) makes, the first one included.
FIB_14 = 1_219


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Layer:
    """Methods that call methods, as in a training program."""

    def __init__(self) -> None:
        self.total = 0

    def add(self, x: int) -> int:
        self.total += x
        return self.total

    def forward(self, x: int) -> int:
        return self.add(x) + 1


def methods() -> None:
    layer = Layer()
    for i in range(600):
        layer.forward(i)


def c_calls() -> None:
    items: list[int] = []
    append, pop = items.append, items.pop
    for i in range(300):
        append(abs(i))
        len(items)
        pop()


# What runs, and how many calls it makes: one of the function itself, and those in it.
WORKS: dict[str, tuple[Work, int]] = {
    "fib": (lambda: fib(14), FIB_14 + 1),
    "methods": (methods, 1_202),
    "c_calls": (c_calls, 1_201),
}


def timed(work: Work, calls: int) -> float:
    """Return nanoseconds a call, once what is new about it is over."""
    work()
    begin = perf_counter_ns()
    work()
    return (perf_counter_ns() - begin) / calls


def plain(work: Work, calls: int) -> Callable[[], float]:
    return lambda: timed(work, calls)


def with_cprofile(work: Work, calls: int) -> Callable[[], float]:
    profile = cProfile.Profile()

    def case() -> float:
        profile.enable()
        try:
            return timed(work, calls)
        finally:
            profile.disable()

    return case


def with_stepwatch(work: Work, calls: int) -> Callable[[], float]:
    functions: Any = stepwatch.functions

    def case() -> float:
        with functions():
            return timed(work, calls)

    return case


def with_hooks(work: Work, calls: int) -> Callable[[], float]:
    """The least that counting every call exactly can cost: hooks that read the clock, no more."""
    import stepwatch_bench_empty as yardstick

    monitoring: Any = getattr(sys, "monitoring")  # noqa: B009  # from 3.12 on
    events = monitoring.events
    hooks = {
        events.PY_START: yardstick.Clock(),
        events.PY_RETURN: yardstick.Clock(),
        events.CALL: yardstick.Clock(False),
        events.C_RETURN: yardstick.Clock(),
    }

    def case() -> float:
        tool = 4
        monitoring.use_tool_id(tool, "hooks")
        for event, hook in hooks.items():
            monitoring.register_callback(tool, event, hook)
        monitoring.set_events(tool, events.PY_START | events.PY_RETURN | events.CALL)
        try:
            return timed(work, calls)
        finally:
            monitoring.set_events(tool, 0)
            for event in hooks:
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)

    return case


def main() -> None:
    run, rounds = sys.argv[1], int(sys.argv[2])
    missing = {}
    absent = {}
    cases = {}
    for name, (work, calls) in WORKS.items():
        cases[f"{name}_plain"] = plain(work, calls)
        cases[f"{name}_cprofile"] = with_cprofile(work, calls)
        try:
            cases[f"{name}_hooks"] = with_hooks(work, calls)
        except (AttributeError, ImportError) as error:
            absent[f"{name}_hooks"] = str(error)
        if timing.lacks(stepwatch, "functions"):
            missing[f"{name}_stepwatch"] = "stepwatch.functions"
        else:
            cases[f"{name}_stepwatch"] = with_stepwatch(work, calls)
    timing.settle()
    stepwatch.start(out=run, quiet=True)
    figures = timing.measure(cases, rounds)
    stepwatch.stop()
    timing.emit(figures, missing=missing, absent=absent)


if __name__ == "__main__":
    main()
