"""Which modulation a radio pulse has."""

import argparse
import time

import torch
import torch.nn.functional as F
from model import PulseNet
from torch.utils.data import DataLoader, TensorDataset


def simulate(count, length=256):
    kind = torch.randint(6, (count,))
    t = torch.arange(length) / length
    phase = 2 * torch.pi * (4 + kind[:, None]) * t + torch.rand(count, 1) * 6.28
    signal = torch.stack([phase.cos(), phase.sin()], 1)
    return signal + 0.5 * torch.randn_like(signal), kind


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pool-first", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    signal, kind = simulate(800)
    loader = DataLoader(TensorDataset(signal, kind), batch_size=12, shuffle=True)
    model = PulseNet(pool_first=args.pool_first)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    step, begin = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        print(f"epoch {epoch} loss {loss.item():.3f}")
    print(f"trained {step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
