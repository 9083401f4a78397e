"""Question 26: which customers will leave? Numbers and categories from the ledger of a shop."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler


class Ledger(Dataset):
    def __init__(self, rows):
        generator = torch.Generator().manual_seed(26)
        self.numbers = torch.randn(rows, 80, generator=generator)
        self.town = torch.randint(0, 300, (rows,), generator=generator)
        self.leaves = (self.numbers[:, 0] + self.numbers[:, 1] > 0).float()

    def __len__(self):
        return len(self.leaves)

    def __getitem__(self, rows):
        return self.numbers[rows], self.town[rows], self.leaves[rows]


class Churn(nn.Module):
    def __init__(self):
        super().__init__()
        self.town = nn.Embedding(300, 16)
        self.body = nn.Sequential(
            nn.Linear(96, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
        )

    def forward(self, numbers, town):
        return self.body(torch.cat([numbers, self.town(town)], dim=1)).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    ledger = Ledger(10240)
    batches = BatchSampler(RandomSampler(ledger), batch_size=512, drop_last=True)
    loader = DataLoader(ledger, sampler=batches, batch_size=None)
    model = Churn()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = 0
    start = time.perf_counter()
    for _ in range(args.epochs):
        for numbers, town, leaves in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(numbers, town), leaves)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
