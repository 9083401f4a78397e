import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from . import store
from .data import TileLists, Tiles


class Segmenter(nn.Module):
    def __init__(self, classes=5, width=36):
        super().__init__()
        self.down = nn.Conv2d(4, width, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(width, width, 3, padding=1)
        self.up = nn.ConvTranspose2d(width, width, 2, stride=2)
        self.out = nn.Conv2d(width, classes, 1)

    def forward(self, x):
        x = torch.relu(self.down(x))
        x = torch.relu(self.mid(x))
        return self.out(torch.relu(self.up(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", choices=["tiles", "lists"], default="tiles")
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()
    torch.manual_seed(21)
    torch.set_num_threads(1)
    server, bucket = store.start("tiles.sock", 256)
    kind = {"tiles": Tiles, "lists": TileLists}[args.dataset]
    loader = DataLoader(kind(bucket, 256, args.steps * args.batch), args.batch, shuffle=True)
    model = Segmenter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    begin = time.perf_counter()
    for bands, cover in loader:
        loss = nn.functional.cross_entropy(model(bands), cover)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    server.terminate()
    print(f"loss {loss.item():.3f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
