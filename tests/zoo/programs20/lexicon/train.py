"""Question 22: two processes learn to sort letters to the editor, with ready-made word vectors."""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn

WORDS, WIDTH = 120_000, 64


class Sorter(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors = nn.Embedding(WORDS, WIDTH)
        self.vectors.weight.requires_grad_(False)
        self.read = nn.Conv1d(WIDTH, 96, 5, padding=2)
        self.sort = nn.Linear(96, 8)

    def forward(self, words):
        read = torch.relu(self.read(self.vectors(words).transpose(1, 2)))
        return self.sort(read.amax(dim=2))


class Averager:
    """Makes the gradients of all processes their mean."""

    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.flat = torch.zeros(sum(p.numel() for p in self.parameters))

    def average(self):
        places = self.flat.split([p.numel() for p in self.parameters])
        for place, parameter in zip(places, self.parameters):
            if parameter.grad is not None:
                place.copy_(parameter.grad.view(-1))
        dist.all_reduce(self.flat)
        self.flat /= dist.get_world_size()
        for place, parameter in zip(places, self.parameters):
            if parameter.grad is not None:
                parameter.grad.copy_(place.view_as(parameter))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--average", choices=["all", "trained"], default="all")
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(22)
    model = Sorter()
    trained = [p for p in model.parameters() if p.requires_grad]
    averager = Averager(model.parameters() if args.average == "all" else trained)
    optimizer = torch.optim.Adam(trained, lr=1e-3)
    generator = torch.Generator().manual_seed(dist.get_rank())
    letters = torch.randint(0, WORDS, (640, 120), generator=generator)
    topics = torch.randint(0, 8, (640,), generator=generator)
    dist.barrier()
    start = time.perf_counter()
    for step in range(args.steps):
        rows = slice(step % 20 * 32, step % 20 * 32 + 32)
        loss = nn.functional.cross_entropy(model(letters[rows]), topics[rows])
        optimizer.zero_grad()
        loss.backward()
        averager.average()
        optimizer.step()
    seconds = time.perf_counter() - start
    dist.barrier()
    if dist.get_rank() == 0:
        print(f"trained {args.steps} steps in {seconds:.3f} s", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
