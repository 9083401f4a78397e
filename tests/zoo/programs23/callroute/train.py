import argparse
import itertools
import time

import torch
from router import Router
from torch import nn, optim
from torch.utils.data import DataLoader
from transcripts import Calls, collate, make_calls


def forever(loader):
    return itertools.chain.from_iterable(itertools.repeat(loader))


def warmup(step, steps=20):
    return min(1.0, (step + 1) / steps)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=1920)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--window", type=int, help="cut transcripts into pieces of this length")
    args = parser.parse_args()

    torch.manual_seed(13)
    torch.set_num_threads(1)
    dataset = Calls(make_calls(args.calls, seed=13), args.window)
    loader = DataLoader(dataset, args.batch_size, shuffle=True, drop_last=True, collate_fn=collate)
    model = Router()
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, warmup)
    criterion = nn.CrossEntropyLoss()

    start = time.perf_counter()
    for step, (words, desks) in enumerate(itertools.islice(forever(loader), args.steps), 1):
        logits = model(words)
        loss = criterion(logits, desks)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
