"""The parts of :mod:`stepwatch.compat.code_profiler`."""
