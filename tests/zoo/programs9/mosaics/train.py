"""Autoencoder for mosaic tiles, with a diary of its weights."""

import argparse
import json
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Diary:
    def __init__(self, path):
        self.file = open(path, "w")

    def write(self, step, model, loss):
        entry = {"step": step, "loss": loss.item(), "weights": {}, "grads": {}}
        for name, p in model.named_parameters():
            counts, edges = torch.histogram(p.detach().flatten(), bins=64)
            entry["weights"][name] = [counts.tolist(), edges.tolist()]
            counts, edges = torch.histogram(p.grad.flatten(), bins=64)
            entry["grads"][name] = [counts.tolist(), edges.tolist()]
        self.file.write(json.dumps(entry) + "\n")
        self.file.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--diary-every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(TensorDataset(torch.rand(64 * 60, 256)), batch_size=64, shuffle=True)
    model = nn.Sequential(
        nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU(),
        nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 256), nn.Sigmoid(),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    diary = Diary("diary.jsonl")
    steps = 0
    start = time.perf_counter()
    for _ in range(4):
        for (x,) in loader:
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            if steps % args.diary_every == 0:
                diary.write(steps, model, loss)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
