"""An iteration of stepwatch.steps beside the bare iterator and two sections, one Python.

steps.py RUN ROUNDS
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import repeat
from typing import Any, Callable

import stepwatch
import timing

COUNT = 1_000


def bare(items: Iterable[object]) -> Iterable[object]:
    return items


def iterate(count: int, wrap: Callable[[Iterable[object]], Iterable[object]]) -> None:
    for _ in wrap(repeat(None, count)):
        pass


def two_sections(count: int, one: Any, two: Any) -> None:
    for _ in repeat(None, count):
        with one:
            pass
        with two:
            pass


def main() -> None:
    run, rounds = sys.argv[1], int(sys.argv[2])
    missing = {}
    cases = {
        "bare": timing.loop(iterate, COUNT, bare),
        "sections": timing.loop(
            two_sections, COUNT, stepwatch.section("one"), stepwatch.section("two")
        ),
    }
    for name in ("steps", "data"):
        if timing.lacks(stepwatch, name):
            missing.update(dict.fromkeys((name, f"{name}_no_usage"), f"stepwatch.{name}"))
        else:
            cases[name] = timing.loop(iterate, COUNT, getattr(stepwatch, name))
    timing.settle()
    figures: dict[str, list[float]] = {}
    for suffix, usage in (("", None), ("_no_usage", False)):
        more = {} if usage is None else {"step_usage": usage}
        stepwatch.start(out=run + suffix, quiet=True, policy="ring", max_mb=16, **more)
        two_sections(500_000, stepwatch.section("one"), stepwatch.section("two"))
        for name, values in timing.measure(cases, rounds).items():
            figures[name + suffix] = values
        stepwatch.stop()
    timing.emit(figures, missing=missing)


if __name__ == "__main__":
    main()
