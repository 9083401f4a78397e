"""Contrastive learning of fish sounds with a bank of negative keys."""

import argparse
import time
from collections import deque

import torch
import torch.nn.functional as F
from torch import nn


class KeyBank:
    """Keys of earlier batches, to be used as negatives."""

    def __init__(self, limit=None):
        self.batches = deque(maxlen=limit)

    def add(self, keys):
        self.batches.append(keys.detach().clone())

    def all(self):
        return torch.cat(list(self.batches))


def make_encoder(n_in, n_out):
    return nn.Sequential(
        nn.Linear(n_in, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, n_out)
    )


@torch.no_grad()
def follow(target, online, momentum=0.99):
    for mine, theirs in zip(target.parameters(), online.parameters()):
        mine.lerp_(theirs, 1 - momentum)


def batches(count, size, features):
    gen = torch.Generator().manual_seed(9)
    pool = torch.randn(4096, features, generator=gen)
    for _ in range(count):
        clean = pool[torch.randint(len(pool), (size,), generator=gen)]
        noise = torch.randn(2, size, features, generator=gen) * 0.2
        yield clean + noise[0], clean + noise[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=int, default=0, help="batches in the bank, 0 for all")
    parser.add_argument("--steps", type=int, default=140)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(9)

    query_net = make_encoder(256, 384)
    key_net = make_encoder(256, 384)
    key_net.load_state_dict(query_net.state_dict())
    bank = KeyBank(args.keep or None)
    optimizer = torch.optim.SGD(query_net.parameters(), lr=0.05, momentum=0.9)

    start = time.perf_counter()
    for step, (first, second) in enumerate(batches(args.steps, 256, 256), 1):
        with torch.no_grad():
            keys = F.normalize(key_net(second), dim=1)
        bank.add(keys)
        queries = F.normalize(query_net(first), dim=1)
        # A few anchors of each batch are enough against many negatives.
        positives = (queries * keys).sum(1)
        negatives = queries[:32] @ bank.all().T
        weights = torch.logsumexp(negatives / 0.2, 1).mean()
        loss = weights - positives.mean() / 0.2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        follow(key_net, query_net)
        if step % 40 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
