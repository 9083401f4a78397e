"""Exercise 1: tell ships from their sound, as sixteen hydrophones hear it."""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

CHANNELS, SAMPLES, WINDOW, HOP, BANDS = 16, 2048, 256, 64, 40


class Hydrophones(Dataset):
    """Recordings; each time one is asked for, it is heard in other noise."""

    def __init__(self, count):
        generator = torch.Generator().manual_seed(1)
        self.waves = torch.randn(256, CHANNELS, SAMPLES, generator=generator)
        self.ships = torch.randint(0, 5, (256,), generator=generator)
        self.count = count
        steps = torch.arange(WINDOW, dtype=torch.float32)
        angles = 2 * torch.pi * steps[:, None] * torch.arange(WINDOW // 2 + 1) / WINDOW
        window = torch.hann_window(WINDOW)[:, None]
        self.basis = torch.cat([window * angles.cos(), window * angles.sin()], dim=1)
        self.bands = torch.rand(WINDOW // 2 + 1, BANDS, generator=generator) / WINDOW

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        wave = self.waves[index % len(self.waves)]
        wave = wave + 0.1 * torch.randn(wave.shape)
        real, imaginary = (wave.unfold(1, WINDOW, HOP) @ self.basis).chunk(2, dim=2)
        power = real.square() + imaginary.square()
        return torch.log1p(power @ self.bands), self.ships[index % len(self.ships)]


class Listener(nn.Module):
    def __init__(self, width=52):
        super().__init__()
        self.first = nn.Conv2d(CHANNELS, width, 3, padding=1)
        self.second = nn.Conv2d(width, width, 3, padding=1, stride=(1, 2))
        self.out = nn.Linear(width, 5)

    def forward(self, x):
        x = F.relu(self.first(x))
        x = F.relu(self.second(x))
        return self.out(x.mean(dim=(2, 3)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Listener()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loader = DataLoader(Hydrophones(24 * args.steps), batch_size=24, num_workers=args.workers)
    begin = time.perf_counter()
    for sounds, ships in loader:
        loss = F.cross_entropy(model(sounds), ships)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
