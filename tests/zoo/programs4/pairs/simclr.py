"""SimCLR."""

import argparse
import time

import torch
import torch.nn.functional as F
from data import TwoCrops
from torch import nn
from torch.utils.data import DataLoader
from tqdm import tqdm


class Encoder(nn.Module):
    def __init__(self, width=24, out=64):
        super().__init__()
        chain, c = [], 3
        for k in range(3):
            o = width * 2**k
            chain += [nn.Conv2d(c, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
            c = o
        self.backbone = nn.Sequential(*chain, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.projector = nn.Sequential(nn.Linear(c, c), nn.ReLU(), nn.Linear(c, out))

    def forward(self, x):
        return F.normalize(self.projector(self.backbone(x)), dim=1)


class NTXent(nn.Module):
    def __init__(self, temperature=0.2):
        super().__init__()
        self.temperature = temperature

    def forward(self, a, b):
        z = torch.cat([a, b])
        similarity = z @ z.T / self.temperature
        similarity.fill_diagonal_(-1e9)
        n = len(a)
        partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
        return F.cross_entropy(similarity, partner)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--n", type=int, default=2560)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        TwoCrops(args.n),
        args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.workers,
        persistent_workers=True,
    )
    model, criterion = Encoder(), NTXent()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        total = 0.0
        for a, b in tqdm(loader, desc=f"epoch {epoch}", mininterval=2):
            z = model(torch.cat([a, b]))
            loss = criterion(*z.chunk(2))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
