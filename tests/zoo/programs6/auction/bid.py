"""Predicting the winning bid of an auction lot."""

import argparse
import time

import torch
from torch import nn

from tracking import Tracker


def lots(steps, batch=256, seed=2):
    generator = torch.Generator().manual_seed(seed)
    table = torch.randn(20_000, 96, generator=generator)
    price = table[:, :10].exp().sum(1).log()
    for _ in range(steps):
        rows = torch.randint(len(table), (batch,), generator=generator)
        yield table[rows], price[rows]


class Bidder(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.inp = nn.Linear(96, width)
        self.mid = nn.Linear(width, width)
        self.mean = nn.Linear(width, 1)
        self.spread = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.mid(torch.relu(self.inp(x))))
        return self.mean(h).squeeze(1), self.spread(h).squeeze(1)


def nll(mean, log_std, target):
    return (log_std + 0.5 * ((target - mean) * torch.exp(-log_std)).pow(2)).mean()


def train(model, data, tracker, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for step, (x, y) in enumerate(data):
        mean, log_std = model(x)
        loss = nll(mean, log_std, y)
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        with torch.no_grad():
            error = torch.sort(y - mean).values
            values = torch.stack(
                [loss, norm, mean.mean(), log_std.mean(), *error[:: len(error) // 8]]
            )
        loss_, norm_, mean_, spread_, *errors = values.tolist()
        tracker.log(
            step, loss=loss_, grad_norm=norm_, mean=mean_, spread=spread_, lr=lr, errors=errors
        )
    tracker.flush()
    return step + 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--flush-every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    began = time.perf_counter()
    done = train(Bidder(), lots(args.steps), Tracker("history.json", args.flush_every), lr=1e-3)
    print(f"trained {done} steps in {time.perf_counter() - began:.3f} s")
