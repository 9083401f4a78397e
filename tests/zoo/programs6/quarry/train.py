"""Grain sizes from photographs; decoding and augmenting happen in a worker."""

import argparse
import time
import zlib

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Stones(Dataset):
    def __init__(self, count, side=48, seed=20):
        rng = np.random.default_rng(seed)
        self.side = side
        self.files = [
            zlib.compress(rng.integers(0, 64, (side, side), dtype=np.uint8).tobytes(), 1)
            for _ in range(256)
        ]
        self.sizes = rng.random(count).astype(np.float32)

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        raw = zlib.decompress(self.files[i % len(self.files)])
        image = np.frombuffer(raw, np.uint8).reshape(self.side, self.side).astype(np.float32) / 64
        image = np.rot90(image, np.random.randint(4)).copy()
        return torch.from_numpy(image)[None], self.sizes[i]


def model():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2, stride=2),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Conv2d(64, 96, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 1),
    )


def main(a):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        Stones(a.batch * 50), a.batch, shuffle=True, num_workers=1, persistent_workers=True
    )
    net = model()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    steps, start = 0, time.perf_counter()
    for epoch in range(a.epochs):
        for image, size in loader:
            loss = nn.functional.l1_loss(net(image).squeeze(1), size)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
        print(f"epoch {epoch} {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--epochs", type=int, default=2)
    main(p.parse_args())
