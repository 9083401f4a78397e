"""Papers and what they cite: sampled neighbourhoods, mean aggregation."""

import argparse
import gc
import time

import numpy as np
import torch
from torch import nn


class Paper:
    def __init__(self, number, year, authors):
        self.number = number
        self.year = year
        self.authors = authors
        self.cites = []


def make_library(count, seed):
    rng = np.random.default_rng(seed)
    years = np.sort(rng.integers(1990, 2024, count))
    papers = [Paper(i, int(years[i]), [i % 97, i % 89]) for i in range(count)]
    for paper, cited in zip(papers, rng.integers(0, count, (count, 12))):
        paper.cites = [papers[j] for j in cited]
    return papers


def neighbour_table(papers):
    return torch.tensor([[cited.number for cited in paper.cites] for paper in papers])


class Aggregator(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.own = nn.Linear(features, hidden)
        self.others = nn.Linear(features, hidden)
        self.mix = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, own, others):
        h = torch.relu(self.own(own) + self.others(others).mean(dim=1))
        return self.out(torch.relu(self.mix(h)))


class Session:
    def __init__(self, papers, tidy):
        torch.manual_seed(40)
        self.papers = papers
        self.tidy = tidy
        self.table = neighbour_table(papers)
        self.features = torch.randn(len(papers), 128)
        self.labels = (self.features[:, :8] > 0.5).sum(dim=1)
        self.model = Aggregator(128, 128, 9)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def step(self, number, chosen):
        own = self.features[chosen]
        others = self.features[self.table[chosen]]
        loss = nn.functional.cross_entropy(self.model(own, others), self.labels[chosen])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        if self.tidy and number % self.tidy == 0:
            del own, others
            gc.collect()
        return loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tidy", type=int, default=3)
    parser.add_argument("--papers", type=int, default=12000)
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.set_num_threads(1)
    session = Session(make_library(args.papers, 40), args.tidy)
    total = torch.zeros(())
    begin = time.perf_counter()
    for number in range(args.steps):
        total += session.step(number, torch.randint(args.papers, (2048,)))
    seconds = time.perf_counter() - begin
    newest = max(paper.year for paper in session.papers)
    print(f"papers until {newest}, mean loss {total.item() / args.steps:.3f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
