"""A classifier of porcelain marks, with its progress in TensorBoard."""

import argparse
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter


class Journal:
    """What the charts show: the loss, and how weights and gradients are spread."""

    def __init__(self, folder, every):
        self.writer = SummaryWriter(folder)
        self.every = every

    def record(self, step, loss, model):
        if step % self.every:
            return
        self.writer.add_scalar("train/loss", loss.item(), step)
        for name, parameter in model.named_parameters():
            self.writer.add_histogram(f"weights/{name}", parameter, step)
            self.writer.add_histogram(f"gradients/{name}", parameter.grad, step)

    def close(self):
        self.writer.close()


def conv_block(n_in, n_out):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, stride=2, padding=1),
        nn.ReLU(),
    )


def make_model():
    return nn.Sequential(
        conv_block(1, 24),
        conv_block(24, 48),
        conv_block(48, 96),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 12),
    )


def make_data(n=2560):
    g = torch.Generator().manual_seed(6)
    labels = torch.randint(12, (n,), generator=g)
    images = torch.randn(n, 1, 48, 48, generator=g) + labels.view(-1, 1, 1, 1) / 12
    return TensorDataset(images, labels)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--log-every", type=int, default=1)
    ap.add_argument("--epochs", type=int, default=3)
    opts = ap.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(6)
    loader = DataLoader(make_data(), batch_size=64, shuffle=True, drop_last=True)
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    criterion = nn.CrossEntropyLoss()
    journal = Journal("charts", opts.log_every)

    step = 0
    t0 = time.perf_counter()
    for _ in range(opts.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            journal.record(step, loss, model)
            step += 1
    elapsed = time.perf_counter() - t0
    journal.close()
    print(f"final loss {loss.item():.4f}")
    print(f"trained {step} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
