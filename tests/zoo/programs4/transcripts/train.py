"""Speaker turns in transcripts, on two processes. Start with torchrun."""

import argparse
import time

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

VOCABULARY = 500


def load_corpus(n, seed=0):
    """Transcripts as the export gives them: the short ones first."""
    rng = np.random.default_rng(seed)
    lengths = np.sort(rng.integers(16, 160, n))
    corpus = []
    for length in lengths:
        tokens = rng.integers(0, VOCABULARY, length)
        corpus.append((tokens, (np.cumsum(tokens % 7 == 0) % 2).astype(np.int64)))
    return corpus


def shard(corpus, rank, world, how):
    if how == "block":
        each = len(corpus) // world
        return corpus[rank * each : (rank + 1) * each]
    return corpus[rank::world]


class TurnTagger(nn.Module):
    def __init__(self, dim=96):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True, bidirectional=True)
        self.tag = nn.Linear(2 * dim, 2)

    def forward(self, tokens):
        return self.tag(self.rnn(self.embed(tokens))[0])


def batches(mine, size, steps, rng):
    for _ in range(steps):
        picked = [mine[i] for i in rng.integers(0, len(mine), size)]
        longest = max(len(tokens) for tokens, _ in picked)
        tokens = np.zeros((size, longest), np.int64)
        tags = np.full((size, longest), -100)
        for k, (t, y) in enumerate(picked):
            tokens[k, : len(t)], tags[k, : len(t)] = t, y
        yield torch.from_numpy(tokens), torch.from_numpy(tags)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--shard", choices=["block", "stride"], default="block")
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    mine = shard(load_corpus(2000), rank, world, args.shard)
    model = DDP(TurnTagger())
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    rng = np.random.default_rng(rank)
    start = time.perf_counter()
    for step, (tokens, tags) in enumerate(batches(mine, args.batch, args.steps, rng)):
        loss = nn.functional.cross_entropy(model(tokens).transpose(1, 2), tags)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 25 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    if rank == 0:
        print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
