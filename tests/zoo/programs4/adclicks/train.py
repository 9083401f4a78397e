import argparse
import dataclasses
import time

import numpy as np
import torch
from store import N_FEATURES, Client, start_store
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclasses.dataclass
class Config:
    steps: int = 160
    batch_size: int = 32
    hidden: int = 1024
    lr: float = 1e-3
    many: bool = False


class Impressions(Dataset):
    def __init__(self, client, ids, clicked):
        self.client, self.ids, self.clicked = client, ids, clicked

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        row = self.client.fetch([self.ids[i]])[0]
        return torch.tensor(row), torch.tensor(self.clicked[i])


class ManyImpressions(Impressions):
    def __getitems__(self, indices):
        rows = self.client.fetch(self.ids[indices])
        return [(torch.tensor(r), torch.tensor(self.clicked[i])) for r, i in zip(rows, indices)]


class CrossNet(nn.Module):
    """Deep & cross."""

    def __init__(self, n, hidden):
        super().__init__()
        self.cross = nn.ModuleList(nn.Linear(n, n) for _ in range(3))
        self.deep = nn.Sequential(
            nn.Linear(n, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
        )
        self.out = nn.Linear(n + hidden, 1)

    def forward(self, x0):
        x = x0
        for layer in self.cross:
            x = x0 * layer(x) + x
        return self.out(torch.cat([x, self.deep(x0)], 1)).squeeze(1)


def parse():
    parser = argparse.ArgumentParser()
    for field in dataclasses.fields(Config):
        flag = "--" + field.name.replace("_", "-")
        if isinstance(field.default, bool):
            parser.add_argument(flag, action="store_true")
        else:
            parser.add_argument(flag, type=type(field.default), default=field.default)
    return Config(**vars(parser.parse_args()))


def main():
    cfg = parse()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(4)
    process, address = start_store(20000)
    n = cfg.steps * cfg.batch_size
    ids = rng.integers(0, 20000, n)
    clicked = (rng.random(n) < 0.2).astype(np.float32)
    cls = ManyImpressions if cfg.many else Impressions
    loader = DataLoader(cls(Client(address), ids, clicked), cfg.batch_size, shuffle=True)
    model = CrossNet(N_FEATURES, cfg.hidden)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=cfg.lr)
    bce = nn.BCEWithLogitsLoss()
    total = 0.0
    start = time.perf_counter()
    for features, click in loader:
        loss = bce(model(features), click)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    seconds = time.perf_counter() - start
    print(f"mean loss {total / cfg.steps:.6f}")
    print(f"trained {cfg.steps} steps in {seconds:.3f} s")
    process.terminate()


if __name__ == "__main__":
    main()
