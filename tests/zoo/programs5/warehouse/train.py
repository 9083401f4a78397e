import argparse
import time

import torch
from shelf import HardNegatives, make_items
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--items", type=int, default=4000)
    parser.add_argument("--refresh", type=int, default=40)
    parser.add_argument("--together", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    items, group = make_items(args.items, 48, torch.Generator().manual_seed(0))
    by_group = group.argsort()
    position = by_group.argsort()
    net = nn.Sequential(
        nn.Linear(48, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 64)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    negatives = HardNegatives(items, group)
    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        anchor = torch.randint(len(items), (256,))
        friend = by_group[(position[anchor] + 1) % len(items)]
        enemy = negatives.nearest[anchor]
        loss = nn.functional.triplet_margin_loss(
            net(items[anchor]), net(items[friend]), net(items[enemy])
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.refresh == 0:
            (negatives.refresh_together if args.together else negatives.refresh)(net)
        if step % 60 == 0:
            print(f"step {step}: {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
