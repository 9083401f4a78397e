"""Denoise long signals and keep an eye on the losses."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    """Pieces of one recording."""

    def __init__(self, count, length):
        self.count, self.length = count, length
        self.clean = torch.sin(torch.arange(2 * length) / 100)
        self.noisy = self.clean + 0.1 * torch.randn(2 * length)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        begin = index * 997 % self.length
        end = begin + self.length
        return self.noisy[begin:end], self.clean[begin:end]


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(1))
        self.shift = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return x * self.gain + self.shift


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        hidden = [layer for _ in range(3) for layer in (Scale(), nn.Tanh())]
        self.layers = nn.Sequential(*hidden, Scale())

    def forward(self, x):
        return self.layers(x)


class History:
    def __init__(self):
        self.entries = []

    def add(self, output, loss):
        self.entries.append({"output": output, "loss": loss})

    def mean(self):
        return sum(entry["loss"].item() for entry in self.entries) / len(self.entries)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Signals(300 * 4, 100_000), batch_size=4)
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
        history.add(output, loss)
    print(f"mean loss {history.mean():.4f}")
    print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
