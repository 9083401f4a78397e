"""Scents of jasmine: a network with a code book that is refreshed now and then."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ROWS = 1536


class Scents(Dataset):
    def __init__(self, scents, steps):
        self.scents, self.steps = scents, steps

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        begin = index % 12 * ROWS
        return self.scents[begin : begin + ROWS]


@torch.no_grad()
def refresh_codes(codes, scents, rounds):
    for _ in range(rounds):
        nearest = torch.cdist(scents, codes).argmin(dim=1)
        sums = torch.zeros_like(codes).index_add_(0, nearest, scents)
        counts = torch.bincount(nearest, minlength=len(codes)).clamp(min=1)
        codes = sums / counts[:, None]
    return codes


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU())
        self.decoder = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 64))

    def forward(self, x, codes):
        mixed = torch.softmax(x @ codes.T, dim=1) @ codes
        return self.decoder(self.encoder(x - mixed))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--refresh-rows", type=int, default=12 * ROWS)
    parser.add_argument("--refresh-rounds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    scents = torch.randn(12 * ROWS, 64)
    loader = DataLoader(Scents(scents, args.steps), batch_size=None, shuffle=True)
    codes = scents[:256].clone()
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    steps = 0
    start = time.perf_counter()
    for x in loader:
        loss = nn.functional.mse_loss(model(x, codes), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 20 == 0:
            codes = refresh_codes(codes, scents[: args.refresh_rows], args.refresh_rounds)
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.4f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
