"""Outline glaciers on satellite tiles."""

import argparse
import json
import pathlib
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

HERE = pathlib.Path(__file__).parent


class Segmenter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Conv2d(4, width, 3, padding=1)
        self.b = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.c = nn.Conv2d(3 * width, width, 3, padding=1)
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        a = F.relu(self.a(x))
        b = F.relu(self.b(F.max_pool2d(a, 2)))
        c = torch.cat([a, F.interpolate(b, scale_factor=2)], dim=1)
        return self.out(F.relu(self.c(c)))


def load_config():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default=str(HERE / "config.json"))
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()
    config = json.loads(pathlib.Path(args.config).read_text())
    if args.threads:
        config["threads"] = args.threads
    return config


def main():
    config = load_config()
    torch.manual_seed(0)
    torch.set_num_threads(config["threads"])
    tiles = torch.randn(256, 4, 32, 32)
    ice = (F.avg_pool2d(tiles[:, :1], 5, 1, 2) > 0).float()
    loader = DataLoader(TensorDataset(tiles, ice), config["batch_size"], shuffle=True)
    model = Segmenter(config["width"])
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    start, steps = time.perf_counter(), 0
    for epoch in range(config["epochs"]):
        for x, y in loader:
            loss = F.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
