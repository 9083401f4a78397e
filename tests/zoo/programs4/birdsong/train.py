#!/usr/bin/env python
import argparse
import logging
import time

import torch
import torch.nn as nn
from recordings import Snippets, make_site
from torch.utils.data import DataLoader

log = logging.getLogger("birdsong")


def conv_block(i, o):
    return nn.Sequential(
        nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.MaxPool2d(2)
    )


class BirdNet(nn.Module):
    def __init__(self, n_species, width=16):
        super().__init__()
        self.features = nn.Sequential(
            conv_block(1, width),
            conv_block(width, 2 * width),
            conv_block(2 * width, 4 * width),
            conv_block(4 * width, 4 * width),
        )
        self.classifier = nn.Linear(4 * width, n_species)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch-size", type=int, default=12)
    p.add_argument("--lr", type=float, default=2e-3)
    p.add_argument("--n-species", type=int, default=10)
    p.add_argument("-j", "--num-workers", type=int, default=0)
    p.add_argument("--seconds", type=int, default=480, help="length of the site's recording")
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def main():
    args = get_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    labels = make_site("site_a.npy", args.seconds, args.n_species, args.seed)
    train_set = Snippets("site_a.npy", labels, seed=args.seed)
    train_loader = DataLoader(
        train_set,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=args.num_workers,
        persistent_workers=args.num_workers > 0,
    )
    model = BirdNet(args.n_species)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, args.lr, args.epochs * len(train_loader))
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.05)

    n_steps = 0
    t0 = time.perf_counter()
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for mels, target in train_loader:
            opt.zero_grad(set_to_none=True)
            loss = loss_fn(model(mels), target)
            loss.backward()
            opt.step()
            sched.step()
            running += loss.item()
            n_steps += 1
        log.info("epoch %d: loss %.4f", epoch, running / len(train_loader))
    print(f"trained {n_steps} steps in {time.perf_counter() - t0:.3f} s")


if __name__ == "__main__":
    main()
