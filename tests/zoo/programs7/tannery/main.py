"""Find flaws in leather: an autoencoder that sees only good hides."""

import argparse
import csv
import pathlib
import time

import torch
from torch import nn


class AutoEncoder(nn.Module):
    def __init__(self, pixels=576, code=48):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(pixels, 512), nn.SELU(), nn.Linear(512, code))
        self.decode = nn.Sequential(nn.Linear(code, 512), nn.SELU(), nn.Linear(512, pixels))

    def forward(self, x):
        return self.decode(self.encode(x))


class Fit:
    def __init__(self, model, patches, lr, folder):
        self.model = model
        self.patches = patches
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.rows = []

    def step(self, x):
        self.optimizer.zero_grad()
        loss = (self.model(x) - x).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    def epoch(self, number, batch):
        losses = [
            self.step(self.patches[rows]) for rows in torch.randperm(len(self.patches)).split(batch)
        ]
        self.rows.append((number, sum(losses) / len(losses)))
        return len(losses)

    def finish(self):
        torch.save(self.model.state_dict(), self.folder / "model.pt")
        with open(self.folder / "losses.csv", "w", newline="") as f:
            csv.writer(f).writerows(self.rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=320)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    fit = Fit(AutoEncoder(), torch.rand(320 * 50, 576), 0.05, "leather")
    began, steps = time.perf_counter(), 0
    for number in range(args.epochs):
        steps += fit.epoch(number, args.batch)
        print("epoch {}: {:.5f}".format(*fit.rows[-1]))
    seconds = time.perf_counter() - began
    fit.finish()
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
