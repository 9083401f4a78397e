"""Count plankton in images prepared by worker processes."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(70)
        self.dishes = rng.integers(0, 256, (32, 96, 96), dtype=np.uint8)
        self.counts = rng.integers(0, 30, count).astype(np.float32)

    def __len__(self):
        return len(self.counts)

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        image = np.rot90(self.dishes[i % 32], int(rng.integers(4)))[::2, ::2].astype(np.float32)
        image = (image - image.mean()) / image.std()
        return torch.from_numpy(image[None].copy()), self.counts[i]


def seed_worker(worker_id):
    np.random.seed(worker_id)


def network(width=32):
    def layer(a, b, stride):
        return nn.Sequential(nn.Conv2d(a, b, 3, stride, 1), nn.BatchNorm2d(b), nn.LeakyReLU(0.1))

    return nn.Sequential(
        layer(1, width, 2),
        layer(width, 2 * width, 2),
        layer(2 * width, 2 * width, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2 * width, 1),
        nn.Softplus(),
    )


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--epochs", type=int, default=3)
    cli.add_argument("--workers", type=int, default=2)
    a = cli.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(71)
    loader = DataLoader(
        Samples(1920),
        batch_size=32,
        shuffle=True,
        num_workers=a.workers,
        persistent_workers=True,
        prefetch_factor=4,
        worker_init_fn=seed_worker,
    )
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.PoissonNLLLoss(log_input=False)
    done, began = 0, time.perf_counter()
    for epoch in range(a.epochs):
        total = torch.zeros(())
        for image, count in loader:
            optimizer.zero_grad()
            loss = criterion(model(image).squeeze(1), count)
            loss.backward()
            optimizer.step()
            total += loss.detach()
            done += 1
        print(f"epoch {epoch}: {total.item() / len(loader):.4f}")
    print(f"trained {done} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
