#!/usr/bin/env python
"""Rhythm classification on two-lead recordings."""

import argparse
import time

import torch
from filters import Spectral, standard_chain
from model import RhythmNet
from recordings import SAMPLES, Recordings, synthesize
from torch import nn
from torch.utils.data import DataLoader


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("-n", "--recordings", type=int, default=1152)
    p.add_argument("-b", "--batch", type=int, default=32)
    p.add_argument("-e", "--epochs", type=int, default=4)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--denoise", choices=["recursive", "spectral"], default="recursive")
    return p.parse_args()


def train_epoch(model, loader, optimizer, criterion):
    model.train()
    running = torch.zeros(())
    for leads, rhythm in loader:
        optimizer.zero_grad()
        loss = criterion(model(leads), rhythm)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        running += loss.detach()
    return running.item() / len(loader)


def main():
    opts = parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    denoise = standard_chain()
    if opts.denoise == "spectral":
        denoise = Spectral(denoise, SAMPLES)
    loader = DataLoader(
        Recordings(*synthesize(opts.recordings, seed=5), denoise),
        batch_size=opts.batch,
        shuffle=True,
        drop_last=True,
        num_workers=2,
        persistent_workers=True,
    )
    model = RhythmNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=opts.lr, fused=True)
    criterion = nn.CrossEntropyLoss()

    start = time.perf_counter()
    for epoch in range(1, opts.epochs + 1):
        mean = train_epoch(model, loader, optimizer, criterion)
        print(f"[{epoch}/{opts.epochs}] loss={mean:.4f}")
    took = time.perf_counter() - start
    print(f"trained {opts.epochs * len(loader)} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
