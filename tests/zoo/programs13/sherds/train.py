"""SimCLR on pictures of pottery sherds."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

from views import two_views


def pictures(count, size, seed):
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (count, 3, 8, 8)).astype(np.uint8)
    return coarse.repeat(size // 8, 2).repeat(size // 8, 3)


class Sherds(Dataset):
    def __init__(self, count, size, seed, in_pairs):
        self.pictures = pictures(count, size, seed)
        self.in_pairs = in_pairs

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if self.in_pairs:
            rng = np.random.default_rng(torch.randint(2**31, ()).item())
            a, b = two_views(picture, rng)
            return torch.from_numpy(a), torch.from_numpy(b)
        return torch.from_numpy(picture)


class Encoder(nn.Module):
    def __init__(self, width=8, out=64):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.GroupNorm(4, width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.GroupNorm(4, 2 * width),
            nn.ReLU(),
            nn.Conv2d(2 * width, 4 * width, 3, padding=1),
            nn.GroupNorm(4, 4 * width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4 * width, 4 * width, 3, padding=1),
            nn.ReLU(),
        )
        self.project = nn.Sequential(nn.Linear(4 * width, 128), nn.ReLU(), nn.Linear(128, out))

    def forward(self, x):
        return F.normalize(self.project(self.trunk(x).mean((2, 3))), dim=1)


def nt_xent(a, b, temperature=0.2):
    z = torch.cat([a, b])
    scores = z @ z.T / temperature
    scores.fill_diagonal_(-1e4)
    n = len(a)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(scores, target)


def pair_up(batch, rng):
    pairs = [two_views(picture, rng) for picture in batch.numpy()]
    a = torch.from_numpy(np.stack([pair[0] for pair in pairs]))
    b = torch.from_numpy(np.stack([pair[1] for pair in pairs]))
    return a, b


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--views", choices=["trainer", "dataset"], default="trainer")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--size", type=int, default=32)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(8)
    rng = np.random.default_rng(8)
    data = Sherds(960, args.size, 8, in_pairs=args.views == "dataset")
    loader = DataLoader(
        data,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=2,
        persistent_workers=True,
    )
    encoder = Encoder()
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(loader))

    step = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        meter = 0.0
        for batch in loader:
            if args.views == "trainer":
                batch = pair_up(batch, rng)
            a, b = batch
            loss = nt_xent(encoder(a), encoder(b))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            meter += loss.item()
            step += 1
        print(f"epoch {epoch + 1}/{args.epochs}  nt-xent {meter / len(loader):.4f}")
    seconds = time.perf_counter() - start
    torch.save({"encoder": encoder.state_dict(), "epoch": args.epochs}, "encoder.pt")
    print(f"trained {step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
