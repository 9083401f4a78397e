import argparse
import time
from dataclasses import dataclass

import torch
from torch import nn

from graph import payment_graph
from model import FraudGCN


@dataclass
class Config:
    cached: bool = False
    accounts: int = 1600
    payments: int = 12000
    features: int = 32
    width: int = 64
    epochs: int = 120


def main(cfg: Config):
    adjacency = payment_graph(cfg.accounts, cfg.payments, seed=10)
    features = torch.randn(cfg.accounts, cfg.features)
    labels = (features[:, 0] > 1.0).long()
    known = torch.rand(cfg.accounts) < 0.5
    model = FraudGCN(cfg.features, cfg.width, cfg.cached)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()

    started = time.perf_counter()
    for epoch in range(cfg.epochs):
        model.train()
        optimizer.zero_grad()
        loss = criterion(model(features, adjacency)[known], labels[known])
        loss.backward()
        optimizer.step()
        if epoch % 40 == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}")
    elapsed = time.perf_counter() - started
    print(f"trained {cfg.epochs} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--cached", action="store_true")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    main(Config(**vars(parser.parse_args())))
