"""What the scripts share that the measured Python runs: rounds of cases in turn, and JSON.

For Python 3.9 and later and without any package, so that every Python there is can run it.
A case takes a tenth of a millisecond or two: most of them then lie between two interruptions, and
the cases of one round close together.
"""

from __future__ import annotations

import gc
import json
import os
import sys
from time import perf_counter_ns
from typing import Any, Callable

Case = Callable[[], float]


def settle(bind: bool = True) -> None:
    """Keep away what disturbs: the garbage collector, and moving between cores."""
    gc.collect()
    gc.disable()
    if bind:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def loop(function: Callable[..., object], count: int, *arguments: object) -> Case:
    """Make a case of a function that does something ``count`` times."""

    def case() -> float:
        # The case before has left its own things in the cache.
        function(count // 8, *arguments)
        begin = perf_counter_ns()
        function(count, *arguments)
        return (perf_counter_ns() - begin) / count

    return case


def measure(cases: dict[str, Case], rounds: int) -> dict[str, list[float]]:
    """Run every case once a round; rounds begin with different cases, and one is for warming up."""
    names = list(cases)
    figures: dict[str, list[float]] = {name: [] for name in names}
    for case in cases.values():
        case()
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            figures[name].append(cases[name]())
    return figures


def lacks(module: object, *names: str) -> list[str]:
    """Return which of these names the module does not have."""
    return [f"stepwatch.{name}" for name in names if not hasattr(module, name)]


def emit(rounds: dict[str, list[float]], **more: Any) -> None:
    """Print what was measured."""
    json.dump({"rounds": rounds, **more}, sys.stdout)
    print()
