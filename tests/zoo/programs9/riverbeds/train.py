"""Grain of riverbeds. What the network says is kept in train.log."""

import argparse
import logging
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("riverbeds")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--level", default="DEBUG")
    args = parser.parse_args()
    logging.basicConfig(
        filename="train.log", level=args.level, format="%(asctime)s %(name)s %(message)s"
    )
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(32 * 80, 1, 24, 24), torch.randint(0, 6, (32 * 80,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(),
        nn.Flatten(), nn.Linear(32 * 100, 6),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    steps = 0
    start = time.perf_counter()
    for _ in range(3):
        for x, y in loader:
            logits = model(x)
            loss = nn.functional.cross_entropy(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            log.debug("step %d logits %s", steps, logits)
            log.debug("step %d first filters %s", steps, model[0].weight)
            log.debug("step %d labels %s", steps, y)
            if steps % 40 == 0:
                log.info("step %d loss %.4f", steps, loss.item())
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
