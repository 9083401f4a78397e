"""Ships in a harbour: image loading by workers that keep up, gradients over two batches."""

import time

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Harbour(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.ships = rng.integers(0, 256, (n, 3, 40, 40), dtype=np.uint8)
        self.kind = self.ships[:, 0].mean((1, 2)) > 127.5

    def __len__(self):
        return len(self.ships)

    def __getitem__(self, i):
        ship = self.ships[i].astype(np.float32) / 255
        return torch.from_numpy(ship[:, :, ::-1].copy() if i % 2 else ship), int(self.kind[i])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 2),
    )  # fmt: skip
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    loader = DataLoader(Harbour(2400), 24, shuffle=True, num_workers=1, persistent_workers=True)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    steps, start = 0, time.perf_counter()
    for epoch in range(2):
        for ships, kinds in loader:
            with accelerator.accumulate(net):
                loss = nn.functional.cross_entropy(net(ships), kinds)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            steps += 1
        accelerator.print(f"epoch {epoch}: {loss.item():.4f}")
        accelerator.save_model(net, "last")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
