"""Segment synthetic volumes that are kept in memory."""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


class Net(nn.Module):
    """Half the size, some layers, and back."""

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
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--keep-on-device", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    scans = torch.randn(128, 2, 96, 96, 96)
    masks = (scans[:, 0] > 0).float()
    if args.keep_on_device:
        scans, masks = scans.to(device), masks.to(device)
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    criterion = nn.BCEWithLogitsLoss()
    steps = 0
    begin = time.perf_counter()
    for _ in range(args.epochs):
        for start in torch.randperm(len(scans) // args.batch_size) * args.batch_size:
            part = slice(int(start), int(start) + args.batch_size)
            scan = scans[part].to(device)
            mask = masks[part].to(device)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = criterion(model(scan)[:, 0], mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.4f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
