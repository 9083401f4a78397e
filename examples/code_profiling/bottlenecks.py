"""Four bottlenecks on purpose, and the report that names them.

    python examples/code_profiling/bottlenecks.py [FOLDER]

A loader that takes 100 ms for a batch, a large product of matrices, a loop in plain Python, and a
small function that is called a thousand times with the same arguments.
"""

from __future__ import annotations

import sys
import time

import torch
from stepwatch.compat.code_profiler import CodeProfiler, create_code_profiler
from torch.utils.data import DataLoader, Dataset


class SlowDataset(Dataset[tuple[torch.Tensor, int]]):
    """Samples that lie far away: 25 ms each."""

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.025)
        return torch.full((8,), float(index)), index % 2


def slow_loading(profiler: CodeProfiler) -> None:
    """Measure a loader whose batches of 4 take 100 ms."""
    loader = DataLoader(SlowDataset(), batch_size=4)
    profiler.profile_data_loading(loader, num_batches=4)


def large_matrix(profiler: CodeProfiler) -> None:
    """Multiply two large matrices, with their memory."""
    with profiler.profile_section("large_matrix", "computation"):
        one = torch.rand(1200, 1200)
        product = one @ one
        float(product.sum())


def cpu_loop(profiler: CodeProfiler) -> None:
    """Add up numbers one by one."""
    with profiler.profile_section("cpu_loop", "computation"):
        total = 0
        for number in range(300_000):
            total += number * number


def frequent_calls(profiler: CodeProfiler) -> None:
    """Compute the same thing over and over."""

    @profiler.profile_function("lookup", category="computation")
    def lookup(word: str) -> int:
        return sum(ord(letter) * place for place, letter in enumerate(word * 400))

    for number in range(1200):
        lookup(f"word {number % 10}")


def main(folder: str = "profiles") -> dict[str, object]:
    """Run the four, and return the report."""
    profiler = create_code_profiler(profile_level="detailed", profile_dir=folder)
    for demonstration in (slow_loading, large_matrix, cpu_loop, frequent_calls):
        demonstration(profiler)
    report = profiler.generate_profiling_report()
    for bottleneck in report["bottlenecks"]:
        print(f"- {bottleneck['description']}")
        print(f"  Severity: {bottleneck['severity']}")
        print(f"  Recommendation: {bottleneck['recommendation']}")
    profiler.cleanup()
    return report


if __name__ == "__main__":
    main(*sys.argv[1:2])
