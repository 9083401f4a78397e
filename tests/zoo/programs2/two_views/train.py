"""Contrastive pre-training (NT-Xent) on made-up pictures."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from views import two_views


class Encoder(nn.Module):
    def __init__(self, width=20, out=64):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, width, 3, stride=2, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(inplace=True),
            nn.Conv2d(2 * width, 4 * width, 3, stride=2, padding=1),
            nn.BatchNorm2d(4 * width),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.projector = nn.Sequential(
            nn.Linear(4 * width, 4 * width), nn.ReLU(), nn.Linear(4 * width, out)
        )

    def forward(self, x):
        return F.normalize(self.projector(self.features(x)), dim=1)


def nt_xent(a, b, temperature=0.2):
    z = torch.cat([a, b])
    similarity = z @ z.T / temperature
    similarity.fill_diagonal_(float("-inf"))
    n = len(a)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(similarity, target)


def collate_views(samples):
    return two_views(torch.stack([picture for (picture,) in samples]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--augment-in", choices=["loop", "loader"], default="loop")
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    in_loader = args.augment_in == "loader"
    pictures = TensorDataset(torch.rand(2048, 3, 32, 32))
    loader = DataLoader(
        pictures,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=2,
        persistent_workers=True,
        collate_fn=collate_views if in_loader else None,
    )
    encoder = Encoder()
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs * len(loader))

    steps = 0
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        total = 0.0
        for batch in loader:
            first, second = batch if in_loader else two_views(batch[0])
            loss = nt_xent(encoder(first), encoder(second))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch} loss {total / len(loader):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
