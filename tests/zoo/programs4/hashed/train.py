"""Topics of documents from hashed words, on several processes, small batches added up."""

import argparse
import contextlib
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TOPICS = 50


class TopicNet(nn.Module):
    def __init__(self, buckets, width=2048):
        super().__init__()
        self.lift = nn.Linear(buckets, width)
        self.mix = nn.Linear(width, width)
        self.out = nn.Linear(width, TOPICS)

    def forward(self, words):
        return self.out(torch.relu(self.mix(torch.relu(self.lift(words)))))


class Loop:
    def __init__(self, args):
        self.args = args
        self.rank = dist.get_rank()
        self.model = DistributedDataParallel(TopicNet(args.buckets), gradient_as_bucket_view=True)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.generator = torch.Generator().manual_seed(100 + self.rank)

    def micro_batch(self):
        n = self.args.micro_batch
        topic = torch.randint(TOPICS, (n,), generator=self.generator)
        words = torch.randint(self.args.buckets, (n, 80), generator=self.generator)
        words[:, :20] = words[:, :20] // TOPICS * TOPICS + topic[:, None]
        counts = torch.zeros(n, self.args.buckets)
        counts.scatter_add_(1, words.clamp(max=self.args.buckets - 1), torch.ones(n, 80))
        return counts, topic

    def around(self, i):
        """What each small batch runs in."""
        if self.args.sync == "last" and i < self.args.accumulate - 1:
            return self.model.no_sync()
        return contextlib.nullcontext()

    def update(self):
        total = 0.0
        for i in range(self.args.accumulate):
            with self.around(i):
                words, topic = self.micro_batch()
                loss = nn.functional.cross_entropy(self.model(words), topic)
                (loss / self.args.accumulate).backward()
            total += loss.item() / self.args.accumulate
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)
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
    parser.add_argument("--buckets", type=int, default=2048)
    parser.add_argument("--micro-batch", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=8)
    parser.add_argument("--sync", choices=["all", "last"], default="all")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    Loop(parser.parse_args()).run()
    dist.destroy_process_group()
