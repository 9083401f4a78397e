"""Sweeps: measure a loader, a function or a training step on purpose, and tell what is best.

Nothing here changes what it is given: random states, loaders, models and optimizers are afterwards
as they were before, also when the program's own code raises.
"""

from stepwatch._sweeps._result import Measurement, Sweep
from stepwatch._sweeps.batch_size import find_batch_size
from stepwatch._sweeps.callables import benchmark_callable
from stepwatch._sweeps.loader import benchmark_dataloader
from stepwatch._sweeps.training import benchmark_training

__all__ = [
    "Measurement",
    "Sweep",
    "benchmark_callable",
    "benchmark_dataloader",
    "benchmark_training",
    "find_batch_size",
]
