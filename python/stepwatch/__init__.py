"""Profiler for training programs: where the time of a step went, and what to change."""

from stepwatch._core import (
    Run,
    Table,
    counter,
    functions,
    is_recording,
    mark,
    open,  # noqa: A004
    section,
    start,
    step_begin,
    step_end,
    stop,
    version,
)
from stepwatch._record import record
from stepwatch._report import Report

__version__ = version()

__all__ = [
    "Report",
    "Run",
    "Table",
    "__version__",
    "counter",
    "functions",
    "is_recording",
    "mark",
    "open",
    "record",
    "section",
    "start",
    "step_begin",
    "step_end",
    "stop",
    "version",
]
