import argparse
import time

import torch
from torch.nn import functional as F

from gcn import LevelNet, Town
from network import make_graph, make_levels

PAST = 12


def windows(levels, times):
    x = torch.stack([levels[t - PAST : t].T for t in times])
    return x, levels[torch.as_tensor(times)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep-operators", action="store_true")
    parser.add_argument("--shafts", type=int, default=600)
    parser.add_argument("--hops", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(33)
    edges, length = make_graph(args.shafts, 33)
    levels = make_levels(edges, args.shafts, 800, 33)
    town = Town(edges, length, args.shafts, args.hops, args.keep_operators)
    model = LevelNet(town, PAST)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)
    valid = windows(levels, list(range(760, 772)))

    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        order = (torch.randperm(720)[:360] + PAST).tolist()
        total, count = 0.0, 0
        for first in range(0, len(order), args.batch_size):
            x, y = windows(levels, order[first : first + args.batch_size])
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total, count = total + loss.item(), count + 1
        steps += count
        schedule.step()
        with torch.no_grad():
            error = F.l1_loss(model(valid[0]), valid[1]).item()
        print(f"epoch {epoch}: mse {total / count:.4f}, validation mae {error:.4f}")
    seconds = time.perf_counter() - start
    torch.save(model.state_dict(), "levels.pt")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
