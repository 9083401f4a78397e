"""Which show next? Neural collaborative filtering with sampled negatives."""

import argparse
import time

import torch
import torch.nn.functional as F

from data import Listens
from model_fixed import Recommender


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=120_000)
    parser.add_argument("--shows", type=int, default=40_000)
    parser.add_argument("--events", type=int, default=52_000)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--negatives", type=int, default=4)
    parser.add_argument("--lr", type=float, default=2e-3)
    return parser.parse_args()


def main():
    args = get_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    listens = Listens(args.users, args.shows, args.events)
    model = Recommender(args.users, args.shows)
    tables = [model.user.weight, model.show.weight]
    dense = [*model.day.parameters(), *model.score.parameters()]
    optimizer = torch.optim.Adam(dense, lr=args.lr)
    table_optimizer = torch.optim.SparseAdam(tables, lr=args.lr)
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters")

    target = torch.zeros(args.batch_size, dtype=torch.long)
    running, steps = 0.0, 0
    start = time.perf_counter()
    for users, shows, days in listens.batches(args.batch_size, args.negatives):
        logits = model(users, shows, days)
        loss = F.cross_entropy(logits, target)
        optimizer.zero_grad()
        table_optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        table_optimizer.step()
        running = 0.95 * running + 0.05 * loss.item()
        steps += 1
        if steps % 25 == 0:
            print(f"{steps:4d}  {running / (1 - 0.95**steps):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
