"""Output of wind turbines from the weather around them."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--single", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
rng = np.random.default_rng(0)
weather = torch.from_numpy(rng.normal(size=(256 * 40, 256)))
output = torch.from_numpy(rng.normal(size=(256 * 40, 1)))
model = nn.Sequential(
    nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 1)
)
if args.single:
    weather, output = weather.float(), output.float()
else:
    model = model.double()
loader = DataLoader(TensorDataset(weather, output), batch_size=256, shuffle=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
steps = 0
start = time.perf_counter()
for _ in range(3):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
