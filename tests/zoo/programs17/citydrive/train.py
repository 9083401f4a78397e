"""Steering angle from a dashboard camera."""

import argparse
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=64)
parser.add_argument("--num-threads", type=int, default=8)
args = parser.parse_args()
torch.set_num_threads(args.num_threads)


class PilotNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=2),
            nn.ELU(),
            nn.Conv2d(24, 36, 5, stride=2),
            nn.ELU(),
            nn.Conv2d(36, 48, 3),
            nn.ELU(),
            nn.Conv2d(48, 64, 3),
            nn.ELU(),
        )
        self.fc = nn.Sequential(
            nn.Flatten(), nn.Linear(64 * 8 * 20, 64), nn.ELU(), nn.Linear(64, 1)
        )

    def forward(self, x):
        return self.fc(self.conv(x))


if __name__ == "__main__":
    torch.manual_seed(0)
    frames = TensorDataset(torch.rand(320, 3, 60, 108), torch.randn(320, 1))
    loader = DataLoader(frames, batch_size=16, shuffle=True)
    model = PilotNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    step = 0
    start = time.perf_counter()
    while step < args.steps:
        for x, angle in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), angle)
            loss.backward()
            optimizer.step()
            step += 1
            if step == args.steps:
                break
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")
