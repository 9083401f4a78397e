"""Long training on a machine that may go away at any time."""

import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def save(path, model, optimizer, step):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    with open(path + ".new", "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save-every", type=int, default=2)
    parser.add_argument("--checkpoint", default="last.pt")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(150 * 32, 256)
    y = x.abs().argmax(1) % 16
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Linear(256, 1280), nn.ReLU(), nn.Linear(1280, 1280), nn.ReLU(), nn.Linear(1280, 16)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step = 0
    start = time.perf_counter()
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % args.save_every == 0:
            save(args.checkpoint, model, optimizer, step)
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
