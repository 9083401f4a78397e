"""Kayaks on the water, from masks stored as runs."""

import argparse
import time

import lightning as L
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SIDE = 64


def expand(runs):
    """Runs of equal pixels, written out, with a soft edge."""
    pixels = []
    value = 0
    for run in runs:
        for _ in range(run):
            pixels.append(value)
        value = 1 - value
    soft = []
    for i in range(len(pixels)):
        left = pixels[i - 1] if i > 0 else 0
        right = pixels[i + 1] if i + 1 < len(pixels) else 0
        soft.append(0.25 * left + 0.5 * pixels[i] + 0.25 * right)
    return torch.tensor(soft, dtype=torch.float32).view(1, SIDE, SIDE)


def expand_arrays(runs):
    pixels = np.repeat(np.arange(len(runs)) % 2, runs).astype(np.float32)
    soft = 0.5 * pixels
    soft[1:] += 0.25 * pixels[:-1]
    soft[:-1] += 0.25 * pixels[1:]
    return torch.from_numpy(soft).view(1, SIDE, SIDE)


class Masks(Dataset):
    def __init__(self, count, decode):
        rng = np.random.default_rng(2)
        self.decode = decode
        self.runs = []
        for _ in range(count):
            cuts = np.sort(rng.choice(np.arange(1, SIDE * SIDE), 60, replace=False))
            self.runs.append(np.diff(cuts, prepend=0, append=SIDE * SIDE).tolist())
        self.labels = rng.integers(0, 6, count).tolist()

    def __len__(self):
        return len(self.runs)

    def __getitem__(self, index):
        return self.decode(self.runs[index]), self.labels[index]


class Finder(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, 6),
        )

    def on_train_start(self):
        self.start = time.perf_counter()

    def on_train_end(self):
        self.seconds = time.perf_counter() - self.start

    def training_step(self, batch, _):
        masks, labels = batch
        return nn.functional.cross_entropy(self.net(masks), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--decode", choices=["lists", "arrays"], default="lists")
    parser.add_argument("--steps", type=int, default=76)
    args = parser.parse_args()
    L.seed_everything(0)
    torch.set_num_threads(1)

    decode = expand if args.decode == "lists" else expand_arrays
    loader = DataLoader(Masks(args.steps * 32, decode), batch_size=32, shuffle=True)
    model = Finder()
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {model.seconds:.3f} s")


if __name__ == "__main__":
    main()
