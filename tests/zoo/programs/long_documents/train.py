"""Most documents are short; now and then there is a book among them."""

import argparse
import random
import time
from collections import Counter

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    """Bags of words, counted when a document is asked for."""

    def __init__(self, count, buckets=2048):
        self.count = count
        self.buckets = buckets
        rng = random.Random(0)
        self.words = [rng.randrange(100_000) for _ in range(1_001_000)]

    def __len__(self):
        return self.count

    def length(self, index):
        return 1_000_000 if index % 960 == 640 else 60

    def __getitem__(self, index):
        begin = index * 7 % 1000
        text = self.words[begin : begin + self.length(index)]
        counts = Counter()
        previous = 0
        for word in text:
            counts[(word * 31 + previous) % self.buckets] += 1
            previous = word
        bag = torch.zeros(self.buckets)
        bag[list(counts)] = torch.tensor(list(counts.values()), dtype=torch.float32)
        return bag / bag.norm(), index % 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefetch", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.multiprocessing.set_sharing_strategy("file_system")
    torch.manual_seed(0)
    loader = DataLoader(
        Documents(9600),
        batch_size=32,
        num_workers=2,
        prefetch_factor=args.prefetch,
    )
    model = nn.Sequential(
        nn.Linear(2048, 1536), nn.ReLU(), nn.Linear(1536, 1536), nn.ReLU(), nn.Linear(1536, 2)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start = time.perf_counter()
    for step, (bags, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(bags), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained {step + 1} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
