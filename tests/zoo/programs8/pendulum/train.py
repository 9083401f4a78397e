"""Learn the flow of a chain of pendulums from simulated pairs of states."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def simulate(count, links=16, seed=0):
    """Return states and the states a moment later."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(-1, 1, (count, links))
    speed = rng.normal(0, 1, (count, links))
    before = np.concatenate([angle, speed], axis=1)
    for _ in range(10):
        pull = np.roll(angle, 1, 1) + np.roll(angle, -1, 1) - 2 * angle
        speed = speed + 0.01 * (-9.81 * np.sin(angle) + 4 * pull)
        angle = angle + 0.01 * speed
    return before, np.concatenate([angle, speed], axis=1)


class Flow(nn.Module):
    def __init__(self, size, hidden=384, depth=4):
        super().__init__()
        layers = [nn.Linear(size, hidden), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(hidden, hidden), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(hidden, size))

    def forward(self, state):
        return state + self.net(state)


class Experiment:
    def __init__(self, precision):
        torch.manual_seed(0)
        before, after = simulate(8192)
        self.dtype = getattr(torch, precision)
        self.model = Flow(before.shape[1]).to(self.dtype)
        pairs = [torch.from_numpy(states).to(self.dtype) for states in (before, after)]
        self.data = TensorDataset(*pairs)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 160)

    def batches(self):
        order = torch.utils.data.BatchSampler(
            torch.utils.data.RandomSampler(self.data), 512, drop_last=True
        )
        return DataLoader(self.data, sampler=order, batch_size=None)

    def train(self, epochs):
        steps, loader = 0, self.batches()
        for epoch in range(epochs):
            for before, after in loader:
                self.optimizer.zero_grad()
                loss = (self.model(before) - after).square().mean()
                loss.backward()
                self.optimizer.step()
                self.scheduler.step()
                steps += 1
            print(f"epoch {epoch} mse {loss.item():.5f}")
        return steps


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", default="float64", choices=["float32", "float64"])
    args = parser.parse_args()
    torch.set_num_threads(1)
    experiment = Experiment(args.precision)
    start = time.perf_counter()
    steps = experiment.train(10)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
