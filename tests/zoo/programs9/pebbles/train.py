"""Pebbles under the lens: blurred and sharpened in the workers."""

import argparse
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Pebbles(Dataset):
    def __init__(self, count):
        self.images = torch.rand(64, 3, 96, 96)
        self.kernel = torch.ones(3, 1, 5, 5) / 25
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        image = self.images[i % 64][None]
        soft = F.conv2d(image, self.kernel, groups=3, padding=2)
        sharp = (image + (image - soft) * torch.rand(1)).clamp(0, 1)
        return F.interpolate(sharp, size=(40, 40), mode="bilinear")[0], i % 7


class Threads:
    def __init__(self, count):
        self.count = count

    def __call__(self, worker_id):
        assert get_worker_info().id == worker_id
        torch.set_num_threads(self.count)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker-threads", type=int, default=8)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(
        Pebbles(1600), batch_size=16, num_workers=2, worker_init_fn=Threads(args.worker_threads)
    )
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 32, 3), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 7),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
