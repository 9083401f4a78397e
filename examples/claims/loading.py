"""Small pictures kept as text: the loader reads and parses one for every sample of every epoch.

    stepwatch run examples/claims/loading.py
    stepwatch run examples/claims/loading.py --parse-once

With --parse-once the pictures are parsed before the training and kept as one tensor: the change
that the report of the first run advises.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 32


def write_pictures(folder: Path, count: int) -> list[Path]:
    """Make pictures of bright and dark halves; the label is the first number."""
    chosen = random.Random(0)
    paths = []
    for number in range(count):
        label = number % 2
        level = (30, 200) if label else (200, 30)
        rows = [
            [level[column * 2 // SIDE] + chosen.randrange(50) for column in range(SIDE)]
            for _ in range(SIDE)
        ]
        path = folder / f"{number}.txt"
        path.write_text(f"{label}\n" + "\n".join(" ".join(map(str, row)) for row in rows))
        paths.append(path)
    return paths


def parse(path: Path) -> tuple[torch.Tensor, int]:
    """Read one picture."""
    first, *rows = path.read_text().splitlines()
    pixels = [[float(word) / 255 - 0.5 for word in row.split()] for row in rows]
    return torch.tensor(pixels).unsqueeze(0), int(first)


class Pictures(Dataset):  # type: ignore[type-arg]
    """Pictures in files; parsed when they are asked for, or all at once before."""

    def __init__(self, paths: list[Path], parse_once: bool) -> None:
        self.paths = paths
        self.parsed = [parse(path) for path in paths] if parse_once else None

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self.parsed[index] if self.parsed else parse(self.paths[index])


def main() -> None:
    """Train for some epochs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parse-once", action="store_true")
    parser.add_argument("--loading-only", action="store_true", help="print samples/s and end")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--pictures", type=int, default=512)
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_pictures(Path(folder), options.pictures)
        data = Pictures(paths, options.parse_once)
        loader = DataLoader(data, batch_size=32, shuffle=True)
        if options.loading_only:
            from stepwatch.compat.code_profiler import create_code_profiler

            profiler = create_code_profiler(save_profiles=False)
            found = profiler.profile_data_loading(loader, num_batches=len(loader))
            print(f"samples/s: {found['throughput']:.1f}")
            return
        model = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 15 * 15, 2)
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        criterion = nn.CrossEntropyLoss()
        for epoch in range(options.epochs):
            total = 0.0
            for pictures, labels in loader:
                optimizer.zero_grad()
                loss = criterion(model(pictures), labels)
                loss.backward()
                optimizer.step()
                total += loss.item()
            print(f"epoch {epoch}: loss {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
