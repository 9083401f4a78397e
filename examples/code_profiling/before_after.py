"""Follow the profiler's own advice, and measure again: loading, memory, training.

    python examples/code_profiling/before_after.py [FOLDER]

Decoding a sample takes 4 ms, and gives float64. The report says that the transform dominates, to
keep its results, and to use smaller types; the second dataset does so.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from stepwatch.compat.code_profiler import create_code_profiler
from torch import nn
from torch.utils.data import DataLoader, Dataset


def decode(index: int) -> torch.Tensor:
    """Make a sample out of what a file would hold."""
    time.sleep(0.004)
    return torch.linspace(0, index, 2048, dtype=torch.float64)


class Decoded(Dataset[tuple[torch.Tensor, int]]):
    """Decodes each sample whenever it is asked for."""

    def __init__(self) -> None:
        self.transform = decode

    def __len__(self) -> int:
        return 128

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.transform(index), index % 4


class Kept(Decoded):
    """Decodes each sample once, and keeps it as float32."""

    def __init__(self) -> None:
        super().__init__()
        self.samples = [decode(index).float() for index in range(len(self))]

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.samples[index], index % 4


def measure(dataset: Dataset[tuple[torch.Tensor, int]], folder: str) -> dict[str, float]:
    """Return the numbers of a dataset: loading, memory of a batch, training end to end."""
    dtype = dataset[0][0].dtype
    model = nn.Sequential(nn.Linear(2048, 64), nn.ReLU(), nn.Linear(64, 4)).to(dtype)
    loader = DataLoader(dataset, batch_size=32)
    with create_code_profiler(profile_dir=folder, create_visualizations=False) as profiler:
        loading = profiler.profile_data_loading(loader, num_batches=3)
        training = profiler.profile_model_training(model, loader, num_batches=3)
        for text in profiler.generate_profiling_report()["recommendations"]:
            print(f"  advice: {text}")
    batch = next(iter(loader))[0]
    step = training["avg_data_time"] + training["avg_total_time"]
    return {
        "samples_per_second": loading["throughput"],
        "batch_bytes": float(batch.nbytes),
        "training_samples_per_second": 32 / step,
    }


def main(folder: str = "profiles") -> dict[str, float]:
    """Measure before and after, and return the ratios."""
    torch.set_num_threads(1)
    before = measure(Decoded(), str(Path(folder) / "before"))
    after = measure(Kept(), str(Path(folder) / "after"))
    ratios = {
        "loading": after["samples_per_second"] / before["samples_per_second"],
        "memory": after["batch_bytes"] / before["batch_bytes"],
        "training": after["training_samples_per_second"] / before["training_samples_per_second"],
    }
    print(
        "loading: {loading:.1f} x, memory: {memory:.0%}, training: {training:.1f} x".format(
            **ratios
        )
    )
    return ratios


if __name__ == "__main__":
    main(*sys.argv[1:2])
