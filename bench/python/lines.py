"""The line profiler beside line_profiler: what a line costs more, one Python.

lines.py RUN ROUNDS
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Callable

import stepwatch
import timing

COUNT = 200
Switch = Callable[[], object]


def load(name: str) -> Any:
    """Return a copy of the functions that are measured."""
    path = Path(__file__).with_name("lines_work.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def nothing() -> None:
    pass


def switched(on: Switch, off: Switch, function: Callable[[int], object], events: int) -> Any:
    """Make a case: nanoseconds an event, with a profiler switched on for it."""

    def case() -> float:
        on()
        try:
            function(10)
            begin = perf_counter_ns()
            function(COUNT)
            return (perf_counter_ns() - begin) / events
        finally:
            off()

    return case


def cases_of(tool: str, module: Any, on: Switch, off: Switch) -> dict[str, Any]:
    """Return the cases of one profiler, for which all but ``other_calls`` were chosen."""
    return {
        f"line_{tool}": switched(on, off, module.work, module.work_lines(COUNT)),
        # Two lines of a chosen function, with a call of one that was not chosen, and without.
        f"callee_{tool}": switched(on, off, module.calls, COUNT),
        f"pair_{tool}": switched(on, off, module.c_calls, COUNT),
        # Not chosen, and not called from a chosen one.
        f"other_{tool}": switched(on, off, module.other_calls, COUNT),
    }


def main() -> None:
    run, rounds = sys.argv[1], int(sys.argv[2])
    missing = {}
    absent = {}
    names = ("line", "callee", "pair", "other")
    cases = cases_of("plain", load("work_plain"), nothing, nothing)
    if timing.lacks(stepwatch, "lines"):
        missing = {f"{name}_stepwatch": "stepwatch.lines" for name in names}
    else:
        lines: Any = stepwatch.lines
        ours = load("work_stepwatch")
        for function in (ours.work, ours.calls, ours.c_calls):
            lines(function)
        cases.update(cases_of("stepwatch", ours, lines.enable, lines.disable))
        cases["other_off"] = switched(nothing, nothing, ours.other_calls, COUNT)
    try:
        from line_profiler import LineProfiler

        theirs = load("work_line_profiler")
        profiler = LineProfiler(theirs.work, theirs.calls, theirs.c_calls)
        cases.update(
            cases_of("line_profiler", theirs, profiler.enable_by_count, profiler.disable_by_count)
        )
    except ImportError:
        absent = {f"{name}_line_profiler": "line_profiler is not installed" for name in names}
    timing.settle()
    stepwatch.start(out=run, quiet=True)
    if not missing:
        stepwatch.lines.disable()
    figures = timing.measure(cases, rounds)
    stepwatch.stop()
    timing.emit(figures, missing=missing, absent=absent)


if __name__ == "__main__":
    main()
