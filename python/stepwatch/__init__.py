"""Profiler for training programs: where the time of a step went, and what to change."""

from stepwatch._core import (
    counter,
    functions,
    is_recording,
    mark,
    section,
    start,
    step_begin,
    step_end,
    stop,
    version,
)

__version__ = version()

__all__ = [
    "__version__",
    "counter",
    "functions",
    "is_recording",
    "mark",
    "section",
    "start",
    "step_begin",
    "step_end",
    "stop",
    "version",
]
