"""A classifier of pictures with holes cut into them."""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


def cut(images: torch.Tensor, size: int = 12) -> torch.Tensor:
    """Return the pictures, each with a hole somewhere."""
    result = []
    for image in images:
        y, x = torch.randint(0, 64 - size, (2,)).tolist()
        holed = image.clone()
        holed[:, y : y + size, x : x + size] = 0
        if torch.rand(()) < 0.5:
            holed = holed.flip(-1)
        result.append(holed)
    return torch.stack(result)


def cut_all(images: torch.Tensor, size: int = 12) -> torch.Tensor:
    """Return the same for all pictures at once."""
    count = len(images)
    corner = torch.randint(0, 64 - size, (count, 2, 1), device=images.device)
    axis = torch.arange(64, device=images.device)
    inside = (axis >= corner) & (axis < corner + size)
    hole = inside[:, 0, :, None] & inside[:, 1, None, :]
    flip = torch.rand(count, 1, 1, 1, device=images.device) < 0.5
    images = torch.where(flip, images.flip(-1), images)
    return images.masked_fill(hole[:, None], 0)


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 64, 3, 2, 1)
        self.middle = nn.Conv2d(64, 128, 3, 2, 1)
        self.head = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.middle(torch.relu(self.stem(x))))
        return self.head(x.mean((2, 3)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--all-at-once", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    device = torch.device("cuda")
    pictures = torch.randn(5000, 3, 64, 64, device=device)
    labels = torch.randint(0, 10, (5000,), device=device)
    model = Classifier().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
    begin = time.perf_counter()
    for _ in range(args.steps):
        index = torch.randint(0, 5000, (256,), device=device)
        images = cut_all(pictures[index]) if args.all_at_once else cut(pictures[index])
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images), labels[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
