"""Settings that were made for the big machine."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=12)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    x = torch.randn(140 * 256, 256)
    y = x[:, :10].argmax(1)
    loader = DataLoader(TensorDataset(x, y), batch_size=256)
    layers = [nn.Linear(256, 512), nn.LayerNorm(512), nn.GELU()]
    for _ in range(6):
        layers += [nn.Linear(512, 512), nn.LayerNorm(512), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(512, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")
    print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
