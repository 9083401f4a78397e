"""Profiler for training programs: where the time of a step went, and what to change."""

from stepwatch import _torch_compile
from stepwatch._compare import Comparison, compare
from stepwatch._core import (
    Lines,
    MemorySnapshot,
    Run,
    Table,
    counter,
    data,
    functions,
    history,
    is_recording,
    lines,
    mark,
    memory,
    open,  # noqa: A004
    sample,
    section,
    start,
    step,
    step_begin,
    step_end,
    steps,
    stop,
    version,
)
from stepwatch._decorators import methods, profile
from stepwatch._record import record
from stepwatch._report import Report

__version__ = version()

_torch_compile.install()

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepwatch._core import Profiler
    from stepwatch._monitor import monitor
    from stepwatch._sweeps import (
        benchmark_callable,
        benchmark_dataloader,
        benchmark_training,
        find_batch_size,
    )

_SWEEPS = ("benchmark_callable", "benchmark_dataloader", "benchmark_training", "find_batch_size")


def load_ipython_extension(shell: object) -> None:
    """Add the magics %%stepwatch and %swlines: what ``%load_ext stepwatch`` calls.

    >>> stepwatch.load_ipython_extension(get_ipython())
    """
    from stepwatch import _ipython

    _ipython.load(shell)


def __getattr__(name: str) -> object:
    """Import what is seldom asked for when it is; the face of a framework imports the framework."""
    if name in ("charts", "hf", "hydra", "jax", "keras", "lightning", "tensorboard", "torch"):
        __import__(f"{__name__}.{name}")
        return globals()[name]
    if name == "monitor":
        from stepwatch._monitor import monitor

        globals()[name] = monitor
        return monitor
    if name == "Profiler":
        from stepwatch._core import Profiler

        globals()[name] = Profiler
        return Profiler
    if name in _SWEEPS:
        __import__(f"{__name__}._sweeps")
        return getattr(globals()["_sweeps"], name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Comparison",
    "Lines",
    "MemorySnapshot",
    "Profiler",
    "Report",
    "Run",
    "Table",
    "__version__",
    "benchmark_callable",
    "benchmark_dataloader",
    "benchmark_training",
    "compare",
    "counter",
    "data",
    "find_batch_size",
    "functions",
    "history",
    "is_recording",
    "lines",
    "load_ipython_extension",
    "mark",
    "memory",
    "methods",
    "monitor",
    "open",
    "profile",
    "record",
    "sample",
    "section",
    "start",
    "step",
    "step_begin",
    "step_end",
    "steps",
    "stop",
    "version",
]
