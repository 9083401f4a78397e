"""Power of wind turbines from what their sensors said in the last hour."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def read_sensors(count, sensors=24, minutes=60):
    rng = np.random.default_rng(0)
    wind = np.abs(np.cumsum(rng.normal(0, 0.3, (count, minutes)), 1) + 8)
    readings = wind[:, None] * rng.uniform(0.5, 1.5, (sensors, 1)) + rng.normal(
        0, 0.5, (count, sensors, minutes)
    )
    power = np.minimum(wind[:, -10:].mean(1) ** 3 / 500, 3.0)
    return readings, power[:, None]


def standard(values):
    return (values - values.mean(0)) / values.std(0)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        return x + self.body(x)


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--dtype", default=None, help="of the features; as they come unless given")
args = parser.parse_args()
torch.manual_seed(0)
torch.set_num_threads(1)

readings, power = read_sensors(6400)
features, targets = standard(readings.reshape(len(readings), -1)), standard(power)
if args.dtype:
    features, targets = features.astype(args.dtype), targets.astype(args.dtype)
dataset = TensorDataset(torch.from_numpy(features), torch.from_numpy(targets))
loader = DataLoader(dataset, batch_size=256, shuffle=True)

model = nn.Sequential(
    nn.Linear(features.shape[1], 320), *[Residual(320) for _ in range(3)], nn.Linear(320, 1)
)
model = model.to(dataset.tensors[0].dtype)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.SmoothL1Loss()

steps = 0
begin = time.perf_counter()
for epoch in range(args.epochs):
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print(f"epoch {epoch}: {loss.item():.4f}")
print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")
