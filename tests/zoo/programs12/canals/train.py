"""Water levels of canals, read from a table service."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Service:
    """Stands for the service across the network: a round trip costs about a millisecond."""

    def __init__(self, rows):
        rng = np.random.default_rng(5)
        self.table = rng.standard_normal((rows, 64, 128), dtype=np.float32)

    def query(self, indices):
        time.sleep(0.001)
        return [self.table[index] for index in indices]


class Canals(Dataset):
    def __init__(self, rows):
        self.rows = rows
        self.service = Service(512)

    def __len__(self):
        return self.rows

    def __getitem__(self, index):
        (levels,) = self.service.query([index % 512])
        return torch.from_numpy(levels)


class CanalsByBatch(Canals):
    def __getitems__(self, indices):
        answers = self.service.query([index % 512 for index in indices])
        return [torch.from_numpy(levels) for levels in answers]


class Gauge(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(128, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
        )
        self.head = nn.Linear(256, 1)

    def forward(self, levels):
        return self.head(self.layers(levels)).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--request", choices=["row", "batch"], default="row")
    parser.add_argument("--steps", type=int, default=90)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    kind = Canals if args.request == "row" else CanalsByBatch
    loader = DataLoader(kind(args.steps * 32), batch_size=32, shuffle=True)
    model = Gauge()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    steps = 0
    start = time.perf_counter()
    for levels in loader:
        target = levels[:, :, :8].mean(dim=2)
        loss = nn.functional.mse_loss(model(levels), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.4f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
