"""Sequence to sequence on two processes, with gradients added up over several batches."""

import argparse
import contextlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Translator(nn.Module):
    def __init__(self, n_words=6000, dim=256):
        super().__init__()
        self.embed = nn.Embedding(n_words, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, n_words)

    def forward(self, source, target):
        _, h = self.encoder(self.embed(source))
        return self.out(self.decoder(self.embed(target), h)[0])


def sentences(n, n_words=6000, length=8):
    g = torch.Generator().manual_seed(0)
    source = torch.randint(1, n_words, (n, length), generator=g)
    return TensorDataset(source, (source * 7) % n_words)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=8)
    parser.add_argument("--batches", type=int, default=128)
    parser.add_argument("--sync-last", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = sentences(8 * args.batches * dist.get_world_size())
    loader = DataLoader(data, 8, sampler=DistributedSampler(data))
    model = DistributedDataParallel(Translator())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    start = time.perf_counter()
    for number, (source, target) in enumerate(loader, 1):
        last = number % args.accumulate == 0
        quiet = args.sync_last and not last
        with model.no_sync() if quiet else contextlib.nullcontext():
            scores = model(source, target[:, :-1])
            loss = nn.functional.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten())
            (loss / args.accumulate).backward()
        if last:
            optimizer.step()
            optimizer.zero_grad()
    seconds = time.perf_counter() - start
    if dist.get_rank() == 0:
        print(f"loss {loss.item():.3f}")
        print(f"trained {number} steps in {seconds:.3f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
