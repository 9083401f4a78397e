"""Segment synthetic volumes that are kept in memory."""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Crops of a few scans."""

    def __init__(self, count: int) -> None:
        self.scans = torch.randn(24, 2, 96, 96, 96)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        scan = self.scans[index % len(self.scans)]
        return scan, (scan[0] > 0).float()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside = nn.Sequential(
            nn.Conv3d(2, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv3d(16, 16, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Conv3d(16, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.interpolate(self.head(self.inside(x)), scale_factor=2)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--pin", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    loader = DataLoader(
        Volumes(args.batches * args.batch_size),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=6,
        persistent_workers=True,
        pin_memory=args.pin,
    )
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    criterion = nn.BCEWithLogitsLoss()
    begin = time.perf_counter()
    for _ in range(args.epochs):
        for scan, mask in loader:
            scan = scan.to(device, non_blocking=args.pin)
            mask = mask.to(device, non_blocking=args.pin)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(scan)[:, 0], mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.4f}")
    print(f"trained {args.epochs * args.batches} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
