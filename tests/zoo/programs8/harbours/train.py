"""Count ships in harbour tiles."""

import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self, count=512, side=56):
        rng = np.random.default_rng(0)
        self.tiles = rng.integers(0, 255, (count, side, side, 3), dtype=np.uint8)
        self.ships = rng.poisson(3, count).astype(np.float32)

    def __len__(self):
        return len(self.tiles)

    def __getitem__(self, i):
        tile = self.tiles[i]
        y, x = np.random.randint(0, 9, 2)
        tile = tile[y : y + 48, x : x + 48]
        if np.random.rand() < 0.5:
            tile = tile[:, ::-1]
        tile = np.ascontiguousarray(tile.transpose(2, 0, 1), dtype=np.float32) / 255
        return torch.from_numpy(tile), self.ships[i]


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(a, b, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(b, b, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(b), nn.BatchNorm2d(b)
        self.skip = nn.Conv2d(a, b, 1, stride, bias=False)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.skip(x))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        Residual(3, 16, 1),
        Residual(16, 32, 2),
        Residual(32, 64, 2),
        Residual(64, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 1),
    )
    loader = DataLoader(
        Tiles(),
        batch_size=16,
        shuffle=True,
        num_workers=1,
        persistent_workers=True,
        worker_init_fn=lambda worker: torch.set_num_threads(1),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=3 * len(loader))
    start, steps = time.perf_counter(), 0
    for epoch in range(3):
        total = torch.zeros(())
        for tiles, ships in loader:
            loss = F.poisson_nll_loss(model(tiles).squeeze(1), ships)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.detach()
            steps += 1
        print(f"epoch {epoch} nll {total.item() / len(loader):.4f}")
    torch.save(model.state_dict(), "harbours.pt")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
