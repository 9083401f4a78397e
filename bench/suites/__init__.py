"""All suites, in the order in which they run and are shown."""

from __future__ import annotations

from bench.harness import Suite
from bench.suites import (
    cap,
    cost,
    guides,
    instructions,
    io,
    latency,
    memory,
    monitor,
    overhead,
    python_functions,
    python_hooks,
    python_import,
    python_lines,
    python_parts,
    python_sampler,
    python_sections,
    python_steps,
    python_training,
    rivals,
    size,
    startup,
    stream,
    threads,
)

# The stream suite comes last of those that measure time: what it wrote, the disk still works on.
SUITES: tuple[Suite, ...] = (
    cost.SUITE,
    instructions.SUITE,
    rivals.SUITE,
    threads.SUITE,
    latency.SUITE,
    startup.SUITE,
    overhead.SUITE,
    monitor.SUITE,
    io.SUITE,
    python_sections.SUITE,
    python_steps.SUITE,
    python_hooks.SUITE,
    python_training.SUITE,
    python_parts.SUITE,
    guides.SUITE,
    python_functions.SUITE,
    python_lines.SUITE,
    python_sampler.SUITE,
    python_import.SUITE,
    memory.SUITE,
    cap.SUITE,
    stream.SUITE,
    size.SUITE,
)
