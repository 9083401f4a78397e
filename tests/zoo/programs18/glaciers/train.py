"""Glacier outlines from image strips."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Strips(Dataset):
    """Patches in the order of the strips, which lie on the archive."""

    def __init__(self, strips, per_strip, side=64):
        self.per_strip = per_strip
        rng = np.random.default_rng(5)
        self.patches = rng.standard_normal((strips * per_strip, 2, side, side), dtype=np.float32)

    def __len__(self):
        return len(self.patches)

    def __getitem__(self, i):
        if i % self.per_strip == 0:
            time.sleep(0.45)
        patch = torch.from_numpy(self.patches[i])
        return patch, (patch[:1] > 0.3).float()


def unet():
    return nn.Sequential(
        nn.Conv2d(2, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 1, 1),
    )


def main(ahead):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    batch = 8
    data = Strips(10, 11 * batch)
    loader = DataLoader(data, batch_size=batch, num_workers=2, prefetch_factor=ahead)
    model = unet()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.BCEWithLogitsLoss()
    start, n = time.monotonic(), 0
    for patch, outline in loader:
        opt.zero_grad()
        loss = criterion(model(patch), outline)
        loss.backward()
        opt.step()
        n += 1
    print("loss", float(loss))
    print(f"trained {n} steps in {time.monotonic() - start:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--ahead", type=int, default=1)
    main(parser.parse_args().ahead)
