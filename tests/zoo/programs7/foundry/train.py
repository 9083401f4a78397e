"""Predict the porosity of castings from the furnace's records."""

import argparse
import logging
import time

import torch
from report import configure, details, details_if_wanted
from torch import nn


class Furnace(nn.Module):
    def __init__(self, channels=24, width=160):
        super().__init__()
        self.inlet = nn.Conv1d(channels, width, 5, padding=2)
        self.core = nn.Conv1d(width, width, 3, padding=1)
        self.regress = nn.Linear(width, 3)

    def forward(self, x):
        x = torch.relu(self.inlet(x))
        x = torch.relu(self.core(x)) + x
        return self.regress(x.mean(-1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--lazy-details", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    configure(logging.DEBUG if args.verbose else logging.INFO)
    show = details_if_wanted if args.lazy_details else details

    torch.set_num_threads(1)
    torch.manual_seed(3)
    records = torch.randn(640, 24, 64)
    porosity = records[:, :3].mean(-1)
    model = Furnace()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    start = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(0, len(records), (32,))
        x, y = records[pick], porosity[pick]
        output = model(x)
        loss = nn.functional.mse_loss(output, y)
        optimizer.zero_grad()
        loss.backward()
        show(step, x, output, loss, model)
        optimizer.step()
        if step % 40 == 0:
            logging.info("step %d mse %.5f", step, loss.item())
    seconds = time.perf_counter() - start
    print(f"final mse {loss.item():.5f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
