"""Masked words with a large vocabulary, on several processes, small batches added up."""

import argparse
import contextlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Encoder(nn.Module):
    def __init__(self, vocabulary, dim=160, n_sampled=256):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim)
        self.position = nn.Parameter(0.02 * torch.randn(48, dim))
        layer = nn.TransformerEncoderLayer(dim, 4, 256, 0.0, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1)
        self.n_sampled = n_sampled

    def forward(self, tokens, masked):
        hidden = self.layers(self.embed(tokens.masked_fill(masked, 0)) + self.position)
        wanted = tokens[masked]
        others = torch.randint(self.embed.num_embeddings, (self.n_sampled,))
        candidates = self.embed(torch.cat([wanted, others]))
        logits = hidden[masked] @ candidates.T / hidden.shape[-1] ** 0.5
        return nn.functional.cross_entropy(logits, torch.arange(len(wanted)))


class Loop:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        self.model = DistributedDataParallel(Encoder(args.vocabulary))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.generator = torch.Generator().manual_seed(100 + self.rank)

    def micro_batch(self):
        shape = (self.args.micro_batch, 48)
        base = torch.randint(self.args.vocabulary, (shape[0], 1), generator=self.generator)
        tokens = (base + 17 * torch.arange(shape[1])) % self.args.vocabulary
        return tokens, torch.rand(shape, generator=self.generator) < 0.15

    def around(self, i):
        """What each small batch runs in."""
        if self.args.sync == "last" and i < self.args.accumulate - 1:
            return self.model.no_sync()
        return contextlib.nullcontext()

    def update(self):
        total = 0.0
        for i in range(self.args.accumulate):
            with self.around(i):
                loss = self.model(*self.micro_batch()) / self.args.accumulate
                loss.backward()
            total += loss.item()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return total

    def run(self):
        start = time.perf_counter()
        for step in range(self.args.steps):
            loss = self.update()
            if self.rank == 0 and step % 20 == 0:
                print(f"step {step} loss {loss:.4f}", flush=True)
        if self.rank == 0:
            seconds = time.perf_counter() - start
            print(f"trained {self.args.steps} steps in {seconds:.3f} s", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--vocabulary", type=int, default=40000)
    parser.add_argument("--micro-batch", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--sync", choices=["all", "last"], default="all")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    Loop(parser.parse_args()).run()
    dist.destroy_process_group()
