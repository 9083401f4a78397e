"""Tissue segmentation of brain slices."""

import argparse
import time
from pathlib import Path

import torch
from data import TISSUES, Slices
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler
from unet import UNet


def loader_for(dataset, batch_size, shuffle):
    order = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
    return DataLoader(
        dataset, batch_size=None, sampler=BatchSampler(order, batch_size, drop_last=True)
    )


@torch.no_grad()
def dice(model, loader):
    model.eval()
    overlap, area = torch.zeros(TISSUES), torch.zeros(TISSUES)
    for slices, masks in loader:
        found = nn.functional.one_hot(model(slices).argmax(1), TISSUES)
        truth = nn.functional.one_hot(masks, TISSUES)
        overlap += (found & truth).sum(dim=(0, 1, 2))
        area += (found + truth).sum(dim=(0, 1, 2))
    model.train()
    return (2 * overlap / area.clamp(min=1)).mean().item()


def train_batch(model, optimizer, criterion, slices, masks, accumulate):
    optimizer.zero_grad()
    total = 0
    for part, mask in zip(slices.chunk(accumulate), masks.chunk(accumulate)):
        loss = criterion(model(part), mask) / accumulate
        loss.backward()
        total = total + loss.detach()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--checkpoints", type=Path, default=Path("checkpoints"))
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    train = loader_for(Slices(60 * args.batch_size, seed=0), args.batch_size, shuffle=True)
    held_out = loader_for(Slices(3 * args.batch_size, seed=1), args.batch_size, shuffle=False)
    model = UNet(TISSUES)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    criterion = nn.CrossEntropyLoss()
    args.checkpoints.mkdir(exist_ok=True)

    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for slices, masks in train:
            loss = train_batch(model, optimizer, criterion, slices, masks, args.accumulate)
            steps += 1
        scheduler.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}, dice {dice(model, held_out):.3f}")
        torch.save(model.state_dict(), args.checkpoints / f"unet-{epoch}.pt")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
