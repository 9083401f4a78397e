"""Flight features of falcons, standardised by the features seen before."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ROWS = 2048


class Flights(Dataset):
    """Whole batches, one for each flight."""

    def __init__(self, count):
        self.count = count
        self.pool = torch.randn(8 * ROWS, 128)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        begin = index % 8 * ROWS
        x = self.pool[begin : begin + ROWS]
        return x, x[:, :4].sum(dim=1)


class Seen:
    def __init__(self, limit):
        self.limit = limit
        self.features = None

    def add(self, features):
        features = features.detach()
        if self.features is None:
            self.features = features
        else:
            self.features = torch.cat([self.features, features])
        if self.limit:
            self.features = self.features[-self.limit :]

    def standardise(self, features):
        return (features - self.features.mean(dim=0)) / (self.features.std(dim=0) + 1e-4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--limit", type=int, default=0, help="rows to remember, 0 for all")
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    loader = DataLoader(Flights(args.steps), batch_size=None, shuffle=True)
    encoder = nn.Sequential(
        nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 96)
    )
    head = nn.Sequential(nn.Linear(96, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-3)
    seen = Seen(args.limit)

    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        features = encoder(x)
        seen.add(features)
        guess = head(seen.standardise(features)).squeeze(-1)
        loss = nn.functional.mse_loss(guess, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.4f}, {len(seen.features)} rows remembered")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
