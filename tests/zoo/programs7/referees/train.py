"""Offside or not: player tracks through a small encoder, with Accelerate."""

import argparse
import time

import torch
from accelerate import Accelerator
from accelerate.utils import release_memory, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TrackEncoder(nn.Module):
    def __init__(self, features=44, width=192):
        super().__init__()
        self.inp = nn.Linear(features, width)
        self.rnn = nn.Conv1d(width, width, 7, padding=3)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        x = torch.relu(self.inp(x)).transpose(1, 2)
        return self.out(torch.relu(self.rnn(x)).mean(-1))


def tracks(count=960, frames=50):
    x = torch.randn(count, frames, 44)
    return TensorDataset(x, (x[:, :, 0].mean(1) > 0).long())


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--tidy-every", type=int, default=4, help="steps; 0 for never")
    return p.parse_args()


def main():
    args = parse()
    set_seed(14)
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    model = TrackEncoder()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(tracks(), batch_size=16, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
            if args.tidy_every and steps % args.tidy_every == 0:
                x, y, logits = release_memory(x, y, logits)
        accelerator.print(f"epoch {epoch} loss {loss.item():.4f}")
    accelerator.print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
