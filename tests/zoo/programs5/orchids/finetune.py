import argparse
import time

import torch
from backbone import pretrained
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Head(nn.Module):
    def __init__(self, width, n_classes, hidden=1024):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
            nn.Linear(hidden, n_classes),
        )  # fmt: skip

    def forward(self, x):
        return self.net(x)


def orchids(n, n_classes, generator):
    kinds = torch.randint(n_classes, (n,), generator=generator)
    petals = torch.rand(n_classes, 3, 12, 12, generator=generator)
    photos = nn.functional.interpolate(petals[kinds], size=64)
    return photos + 0.2 * torch.randn(photos.shape, generator=generator), kinds


@torch.no_grad()
def features_of(backbone, photos, batch=64):
    return torch.cat([backbone(part) for part in photos.split(batch)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--features-once", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    backbone = pretrained()
    photos, kinds = orchids(480, 12, torch.Generator().manual_seed(0))
    inputs = features_of(backbone, photos) if args.features_once else photos
    loader = DataLoader(TensorDataset(inputs, kinds), 32, shuffle=True)
    head = Head(backbone.width, 12)
    optimizer = torch.optim.AdamW(head.parameters(), lr=1e-3)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for x, kind in loader:
            if not args.features_once:
                with torch.no_grad():
                    x = backbone(x)
            loss = nn.functional.cross_entropy(head(x), kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
