"""Sections and decorated functions beside what people write instead, one Python.

sections.py RUN ROUNDS
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import repeat
from time import perf_counter
from typing import Any

import stepwatch
import timing

COUNT = 2_000
# For what takes some hundred nanoseconds, and for what takes microseconds.
FEWER = 400
FEW = 100


class Timer:
    """What people write: two clock reads, a sum, a count."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.total = 0.0
        self.begin = 0.0

    def __enter__(self) -> Timer:
        self.begin = perf_counter()
        return self

    def __exit__(self, *_error: object) -> None:
        self.total += perf_counter() - self.begin


totals = {"a": 0.0}


@contextmanager
def timer(name: str) -> Iterator[None]:
    """The same as a generator."""
    begin = perf_counter()
    try:
        yield
    finally:
        totals[name] += perf_counter() - begin


def function(x: object) -> object:
    return x


def empty(count: int) -> None:
    for _ in repeat(None, count):
        pass


def kept(count: int, manager: Any) -> None:
    for _ in repeat(None, count):
        with manager:
            pass


def named(count: int) -> None:
    for _ in repeat(None, count):
        with stepwatch.section("a"):
            pass


def clock_named(count: int, module: Any) -> None:
    for _ in repeat(None, count):
        with module.clock("a"):
            pass


def class_new(count: int) -> None:
    for _ in repeat(None, count):
        with Timer("a"):
            pass


def generator(count: int) -> None:
    for _ in repeat(None, count):
        with timer("a"):
            pass


def torch_named(count: int, record_function: Any) -> None:
    for _ in repeat(None, count):
        with record_function("a"):
            pass


def call(count: int, f: Any) -> None:
    for _ in repeat(None, count):
        f(1)


def main() -> None:
    run, rounds = sys.argv[1], int(sys.argv[2])
    missing = {}
    absent = {}

    ours = {"kept": timing.loop(kept, COUNT, stepwatch.section("a"))}
    ours["named"] = timing.loop(named, COUNT)
    if timing.lacks(stepwatch, "profile"):
        missing["decorated"] = "stepwatch.profile"
    else:
        ours["decorated"] = timing.loop(call, COUNT, stepwatch.profile(function))
    always = {
        "empty": timing.loop(empty, COUNT),
        "bare_call": timing.loop(call, COUNT, function),
        "class": timing.loop(kept, FEWER, Timer("a")),
    }
    off = {}
    yardstick = {}
    try:
        import stepwatch_bench_empty

        off["empty_c"] = timing.loop(kept, COUNT, stepwatch_bench_empty.Empty())
        yardstick["clock"] = timing.loop(kept, COUNT, stepwatch_bench_empty.Clock())
        yardstick["clock_named"] = timing.loop(clock_named, COUNT, stepwatch_bench_empty)
    except ImportError as error:
        absent["off_empty_c"] = absent["clock"] = absent["clock_named"] = str(error)
    on = {
        **yardstick,
        "class_new": timing.loop(class_new, FEWER),
        "contextmanager": timing.loop(generator, FEW),
    }
    try:
        from torch.profiler import record_function

        on["record_function"] = timing.loop(torch_named, FEW, record_function)
    except ImportError:
        absent["record_function"] = "torch is not installed"

    timing.settle()
    before = timing.measure({**always, **ours, **off}, rounds)
    stepwatch.start(out=run, quiet=True, policy="ring", max_mb=16)
    # Every page of the ring has been written before.
    kept(1_000_000, stepwatch.section("a"))
    figures = timing.measure({**always, **ours, **on}, rounds)
    stepwatch.stop()
    figures.update({f"off_{name}": values for name, values in before.items()})
    missing.update({f"off_{name}": why for name, why in missing.items()})
    timing.emit(figures, missing=missing, absent=absent)


if __name__ == "__main__":
    main()
