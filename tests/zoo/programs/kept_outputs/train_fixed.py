"""Denoise long signals and keep an eye on the losses."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    def __init__(self, count, length):
        self.count = count
        self.t = torch.arange(length) / 100

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        clean = torch.sin(self.t * (1 + index % 7))
        return clean + 0.1, clean


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))
        self.shift = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x * self.gain + self.shift


class History:
    def __init__(self):
        self.entries = []

    def add(self, output, loss):
        self.entries.append({"output": output, "loss": loss})

    def mean(self):
        return sum(entry["loss"] for entry in self.entries) / len(self.entries)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Signals(150 * 4, 400_000), batch_size=4)
    model = Denoiser()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = History()
    start = time.perf_counter()
    for noisy, clean in loader:
        output = model(noisy)
        loss = nn.functional.mse_loss(output, clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.add(None, loss.item())
    print(f"mean loss {history.mean():.4f}")
    print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
