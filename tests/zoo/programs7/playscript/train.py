import argparse
import time

import torch
from model import ScriptModel, audible, audible_by_comparison
from torch.nn.functional import cross_entropy


def corpus(rows, length):
    g = torch.Generator().manual_seed(99)
    tokens = torch.randint(3, 400, (rows, length), generator=g)
    chance = torch.rand(rows, length, generator=g)
    tokens[chance < 0.04] = 1
    tokens[chance > 0.97] = 2
    return tokens


def train(model, data, steps, batch):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(steps):
        at = (step * batch) % (len(data) - batch)
        tokens = data[at : at + batch]
        logits = model(tokens)
        loss = cross_entropy(logits.flatten(0, 1), tokens.flatten() % 200)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 49:
            print(f"step {step + 1}: {loss.item():.3f}")


def cli():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=110)
    p.add_argument("--compare", action="store_true")
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    model = ScriptModel(mask=audible_by_comparison if a.compare else audible)
    data = corpus(1000, 96)
    began = time.perf_counter()
    train(model, data, a.steps, batch=16)
    print(f"trained {a.steps} steps in {time.perf_counter() - began:.3f} s")


cli()
