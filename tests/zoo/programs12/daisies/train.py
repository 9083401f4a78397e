"""Daisy measurements through a deep residual network."""

import argparse
import time

import torch
from adam import PaperAdam
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Residual(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return self.head(x)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--adam", choices=["paper", "library"], default="paper")
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    x = torch.randn(args.steps * 96, 512)
    y = torch.randint(0, 10, (args.steps * 96,))
    loader = DataLoader(TensorDataset(x, y), batch_size=96, shuffle=True)
    model = Residual(512, 12)
    if args.adam == "paper":
        optimizer = PaperAdam(model.parameters(), lr=3e-4)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01, fused=True)

    steps = 0
    start = time.perf_counter()
    for features, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(features), labels)
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.3f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
