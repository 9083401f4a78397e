"""Train with the training optimizer, which profiles itself, and look at what it found.

python examples/code_profiling/optimizer.py [FOLDER]
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import torch
from stepwatch.compat.training_optimizer import create_optimized_training_optimizer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_loader(samples: int, seed: int) -> DataLoader[tuple[torch.Tensor, ...]]:
    """Make a loader of points on two rings."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 2, (samples,), generator=generator)
    angles = torch.rand(samples, generator=generator) * 6.283
    radius = 1 + labels + 0.1 * torch.randn(samples, generator=generator)
    points = torch.stack([radius * angles.cos(), radius * angles.sin()], 1)
    return DataLoader(TensorDataset(points, labels), batch_size=32)


async def train(folder: str = "checkpoints") -> dict[str, object]:
    """Train for three epochs; return the results."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = create_optimized_training_optimizer(
        model=model,
        train_loader=make_loader(512, 1),
        val_loader=make_loader(128, 2),
        experiment_name="rings",
        max_epochs=3,
        learning_rate=0.01,
        checkpoint_dir=folder,
        enable_profiling=True,
        profile_level="detailed",
    )
    results = await optimizer.train()
    report = optimizer.code_profiler.generate_profiling_report()
    print(f"Loss after {results['total_epochs']} epochs: {results['final_validation_loss']:.3f}")
    for name in ("data_loading", "forward", "backward", "optimizer", "validation"):
        seconds = report["detailed_metrics"]["average_times"][name]
        print(f"{name}: {seconds * 1e3:.3f} ms")
    print("Pictures:", *[Path(path).name for path in optimizer.create_training_visualizations()])
    optimizer.cleanup()
    return results


if __name__ == "__main__":
    asyncio.run(train(*sys.argv[1:2]))
