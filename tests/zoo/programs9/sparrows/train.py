"""Sparrow calls; the training set is small, so there are many epochs."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--persistent", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
calls = TensorDataset(torch.randn(160, 1, 1024), torch.randint(0, 4, (160,)))
loader = DataLoader(
    calls, batch_size=16, shuffle=True, num_workers=2, persistent_workers=args.persistent
)
model = nn.Sequential(
    nn.Conv1d(1, 32, 9, stride=2), nn.ReLU(), nn.Conv1d(32, 32, 9, stride=2), nn.ReLU(),
    nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 4),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps = 0
start = time.perf_counter()
for epoch in range(20):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        steps += 1
    if epoch % 5 == 4:
        print(f"epoch {epoch}: {total / 10:.3f}")
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
