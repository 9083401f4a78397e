"""Tell instruments apart by a short piece of their sound."""

import argparse
import time

import torch
from model import Listener
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def make_sounds(count, size, classes):
    gen = torch.Generator().manual_seed(4)
    labels = torch.randint(classes, (count,), generator=gen)
    t = torch.arange(size) / size
    pitch = (20 + 14 * labels).unsqueeze(1)
    phase = torch.rand(count, 1, generator=gen) * 6.28
    wave = torch.sin(6.28 * pitch * t + phase) + torch.randn(count, size, generator=gen)
    return TensorDataset(wave, labels)


class Trainer:
    def __init__(self, args):
        self.loader = DataLoader(make_sounds(1440, args.size, 8), batch_size=12, shuffle=True)
        self.model = Listener(args.size, 8, args.spectrum)
        self.optimizer = optim.Adam(self.model.parameters(), lr=1e-3)
        self.loss_fn = nn.CrossEntropyLoss()
        self.steps = 0

    def train_step(self, wave, label):
        self.optimizer.zero_grad()
        loss = self.loss_fn(self.model(wave), label)
        loss.backward()
        self.optimizer.step()
        self.steps += 1
        return loss.detach()

    def fit(self, epochs):
        for epoch in range(epochs):
            for wave, label in self.loader:
                loss = self.train_step(wave, label)
            print(f"epoch {epoch}  loss {loss:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--spectrum", choices=["dense", "fft"], default="dense")
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(4)
    trainer = Trainer(arguments)
    started = time.perf_counter()
    trainer.fit(arguments.epochs)
    print(f"trained {trainer.steps} steps in {time.perf_counter() - started:.3f} s")
