"""Minutes of meetings, long and short: who is in favour? DistributedDataParallel on the CPU."""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

BATCH = 16


class Minutes(Dataset):
    """Batches ready made: each of one length."""

    def __init__(self, batches):
        generator = torch.Generator().manual_seed(100)
        lengths = [48] * (batches // 2) + [176] * (batches // 2)
        self.tokens = [
            torch.randint(2000, (BATCH, length), generator=generator) for length in lengths
        ]
        self.labels = torch.randint(2, (batches, BATCH), generator=generator)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return self.tokens[index], self.labels[index]


def share(count, rank, world, how):
    if how == "blocks":
        size = count // world
        return list(range(rank * size, (rank + 1) * size))
    return list(range(rank, count, world))


class Shuffled:
    def __init__(self, indices, seed):
        self.indices, self.seed = indices, seed

    def __len__(self):
        return len(self.indices)

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.seed)
        order = torch.randperm(len(self.indices), generator=generator)
        return iter([self.indices[k] for k in order.tolist()])


class Voter(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embed = nn.Embedding(2000, width)
        self.conv = nn.Conv1d(width, 2 * width, 5, padding=2)
        self.mix = nn.Conv1d(2 * width, width, 5, padding=2)
        self.out = nn.Linear(width, 2)

    def forward(self, tokens):
        x = torch.relu(self.conv(self.embed(tokens).transpose(1, 2)))
        return self.out(torch.relu(self.mix(x)).mean(dim=2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", choices=["blocks", "turns"], default="blocks")
    parser.add_argument("--batches", type=int, default=360)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(101)
    model = DistributedDataParallel(Voter())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    indices = share(args.batches, rank, world, args.share)
    loader = DataLoader(Minutes(args.batches), batch_size=None, sampler=Shuffled(indices, 102))
    dist.barrier()
    steps = 0
    begin = time.perf_counter()
    for tokens, labels in loader:
        loss = nn.functional.cross_entropy(model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - begin
    if rank == 0:
        print(f"loss {loss.item():.3f}")
        print(f"trained {steps} steps in {seconds:.3f} s", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
