"""Freight papers: each is a dict, as it came from the customs office."""

import random

import torch
from torch.utils.data import Dataset

GOODS = ["steel", "bananas", "cars", "paper", "toys", "oil", "grain", "phones"]


def read_papers(n, seed=0):
    rng = random.Random(seed)
    papers = []
    for number in range(n):
        items = [
            {"good": rng.choice(GOODS), "kg": rng.random() * 900, "boxes": [rng.random()] * 2}
            for _ in range(5)
        ]
        papers.append({"number": number, "items": items, "from": f"port-{rng.randrange(40)}"})
    return papers


class Papers(Dataset):
    def __init__(self, n):
        self.papers = read_papers(n)

    def __len__(self):
        return len(self.papers)

    def __getitem__(self, i):
        features = torch.zeros(len(GOODS) + 2)
        for item in self.papers[i]["items"]:
            features[GOODS.index(item["good"])] += item["kg"] / 900
        features[-1] = int(self.papers[i]["from"][5:]) / 40
        return features, features[:3].sum() * 2 - features[4]
