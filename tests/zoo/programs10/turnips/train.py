"""Estimates the weight of turnips from a scan, with Accelerate."""

import argparse
import gc
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 24, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 48, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(48, 64, 3, padding=1),
            nn.ReLU(),
        )
        self.weight = nn.Linear(64, 1)

    def forward(self, scans):
        return self.weight(self.features(scans).mean(dim=(2, 3))).squeeze(1)


def train_epoch(accelerator, model, loader, optimizer, tidy):
    model.train()
    total = torch.zeros(())
    for scans, weights in loader:
        predicted = model(scans)
        loss = nn.functional.mse_loss(predicted, weights)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        total += loss.detach()
        if tidy:
            del predicted, loss
            gc.collect()
    return (total / len(loader)).item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--no-tidy", dest="tidy", action="store_false")
    args = parser.parse_args()

    torch.set_num_threads(1)
    set_seed(120)
    accelerator = Accelerator(cpu=True)
    scans = torch.rand(18 * 24, 1, 32, 32)
    weights = scans.mean(dim=(1, 2, 3)) * 10
    loader = DataLoader(TensorDataset(scans, weights), batch_size=24, shuffle=True)
    model = Scale()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    started = time.perf_counter()
    for epoch in range(args.epochs):
        loss = train_epoch(accelerator, model, loader, optimizer, args.tidy)
        accelerator.print(f"epoch {epoch}: loss {loss:.4f}")
    elapsed = time.perf_counter() - started
    accelerator.print(f"trained {args.epochs * len(loader)} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
