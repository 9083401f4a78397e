"""Question 2. Pen strokes are drawn on a small canvas and a network names the letter."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

SIDE = 28


def draw_points(xs, ys, pressure):
    canvas = np.zeros((SIDE, SIDE), dtype=np.float32)
    for x, y, force in zip(xs, ys, pressure):
        column = min(max(int(x * SIDE), 0), SIDE - 1)
        row = min(max(int(y * SIDE), 0), SIDE - 1)
        canvas[row, column] += force
    return canvas


def draw_stroke(xs, ys, pressure):
    columns = np.clip((xs * SIDE).astype(np.int64), 0, SIDE - 1)
    rows = np.clip((ys * SIDE).astype(np.int64), 0, SIDE - 1)
    flat = np.bincount(rows * SIDE + columns, weights=pressure, minlength=SIDE * SIDE)
    return flat.reshape(SIDE, SIDE).astype(np.float32)


class Strokes(Dataset):
    def __init__(self, count, draw):
        rng = np.random.default_rng(2)
        walks = rng.normal(0, 0.02, (500, 2, 900)).cumsum(axis=2) + 0.5
        self.points = walks.astype(np.float32)
        self.pressure = rng.random((500, 900), dtype=np.float32)
        self.letters = rng.integers(0, 26, 500)
        self.count = count
        self.draw = draw

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        index %= len(self.letters)
        xs, ys = self.points[index]
        canvas = self.draw(xs, ys, self.pressure[index])
        return torch.from_numpy(canvas)[None], int(self.letters[index])


def network():
    return nn.Sequential(
        nn.Conv2d(1, 24, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(24, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 49, 26),
    )


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=90)
    cli.add_argument("--draw", choices=["points", "stroke"], default="points")
    opt = cli.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    draw = {"points": draw_points, "stroke": draw_stroke}[opt.draw]
    loader = DataLoader(Strokes(48 * opt.steps, draw), batch_size=48)
    net = network()
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    t0 = time.perf_counter()
    for canvases, letters in loader:
        adam.zero_grad()
        loss = criterion(net(canvases), letters)
        loss.backward()
        adam.step()
    print(f"trained {opt.steps} steps in {time.perf_counter() - t0:.3f} s")
