"""Language identification of subtitles, data parallel.

python -m torch.distributed.run --nproc-per-node 2 train.py
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

LETTERS, LANGUAGES = 80, 12


def make_lines(count, seed):
    g = torch.Generator().manual_seed(seed)
    lengths = torch.randint(60, 81, (count,), generator=g)
    lines = []
    for length in lengths.tolist():
        language = int(torch.randint(0, LANGUAGES, (), generator=g))
        letters = torch.randint(1, LETTERS, (length,), generator=g)
        letters[::3] = (letters[::3] + language * 5) % 60 + 1
        lines.append((letters, language))
    return lines


def share_out(size, shares):
    """The rows of a batch that each process gets, as (first, last)."""
    edges = [round(size * sum(shares[:i]) / sum(shares)) for i in range(len(shares) + 1)]
    return list(zip(edges, edges[1:]))


def batches(lines, size, mine, generator):
    order = torch.randperm(len(lines), generator=generator).tolist()
    for at in range(0, len(lines), size):
        rows = [lines[i] for i in order[at : at + size][mine[0] : mine[1]]]
        letters = nn.utils.rnn.pad_sequence([row[0] for row in rows], batch_first=True)
        yield letters, torch.tensor([row[1] for row in rows])


class Identifier(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.letters = nn.Embedding(LETTERS, width, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(width, width, 5, padding=2) for _ in range(4))
        self.out = nn.Linear(width, LANGUAGES)

    def forward(self, letters):
        x = self.letters(letters).transpose(1, 2)
        for conv in self.convs:
            x = x + F.gelu(conv(x))
        return self.out(x.amax(2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shares", type=int, nargs="+", default=[3, 1])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=48)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(90)
    lines = make_lines(40 * args.batch_size, 90)
    mine = share_out(args.batch_size, args.shares)[rank]
    weight = world * (mine[1] - mine[0]) / args.batch_size
    model = DistributedDataParallel(Identifier())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(91)

    dist.barrier()
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        total = torch.zeros(1)
        for letters, language in batches(lines, args.batch_size, mine, generator):
            loss = weight * F.cross_entropy(model(letters), language)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {total.item() / world / 40:.4f}", flush=True)
    seconds = time.perf_counter() - start
    if rank == 0:
        torch.save(model.module.state_dict(), os.path.join(os.getcwd(), "identifier.pt"))
        print(f"trained {steps} steps in {seconds:.3f} s", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
