"""Profiler for training programs: where the time of a step went, and what to change."""

from stepwatch import _torch_compile
from stepwatch._compare import Comparison, compare
from stepwatch._core import (
    Lines,
    MemorySnapshot,
    Profiler,
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
from stepwatch._lazy import Lazy, LazyModule
from stepwatch._record import record
from stepwatch._report import Report

__version__ = version()

_torch_compile.install()

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stepwatch import charts, hf, hydra, jax, keras, lightning, tensorboard, torch
    from stepwatch._monitor import monitor
    from stepwatch._sweeps import (
        benchmark_callable,
        benchmark_dataloader,
        benchmark_training,
        find_batch_size,
    )
else:
    charts = LazyModule("stepwatch.charts")
    hf = LazyModule("stepwatch.hf")
    hydra = LazyModule("stepwatch.hydra")
    jax = LazyModule("stepwatch.jax")
    keras = LazyModule("stepwatch.keras")
    lightning = LazyModule("stepwatch.lightning")
    tensorboard = LazyModule("stepwatch.tensorboard")
    torch = LazyModule("stepwatch.torch")
    monitor = Lazy("stepwatch._monitor", "monitor")
    benchmark_callable = Lazy("stepwatch._sweeps", "benchmark_callable")
    benchmark_dataloader = Lazy("stepwatch._sweeps", "benchmark_dataloader")
    benchmark_training = Lazy("stepwatch._sweeps", "benchmark_training")
    find_batch_size = Lazy("stepwatch._sweeps", "find_batch_size")


def load_ipython_extension(shell: object) -> None:
    """Add the magics %%stepwatch and %swlines: what ``%load_ext stepwatch`` calls.

    >>> stepwatch.load_ipython_extension(get_ipython())
    """
    from stepwatch import _ipython

    _ipython.load(shell)


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
