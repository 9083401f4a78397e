"""Segment nuclei in stained tissue with a small U-Net."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from dataset import Slides
from unet import UNet


def dice(logits, mask):
    p = torch.sigmoid(logits)
    return 1 - (2 * (p * mask).sum() + 1) / (p.sum() + mask.sum() + 1)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    scores = [1 - dice(model(x), y).item() for x, y in loader]
    model.train()
    return sum(scores) / len(scores)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--lr", type=float, default=2e-3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    train_loader = DataLoader(
        Slides(17, seed=1),
        args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
    )
    val_loader = DataLoader(Slides(1, seed=2, augment=False), args.batch_size)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)

    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        running = 0.0
        for image, mask in train_loader:
            logits = model(image)
            loss = F.binary_cross_entropy_with_logits(logits, mask) + dice(logits, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item()
            steps += 1
        score = evaluate(model, val_loader)
        print(f"epoch {epoch}: loss {running / len(train_loader):.3f}, val dice {score:.3f}")
        torch.save(model.state_dict(), "unet.pt")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
