"""When the geyser blows next: a plain network on the last readings."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--threads", type=int, default=32)
args = parser.parse_args()
torch.set_num_threads(args.threads)
torch.manual_seed(0)
data = TensorDataset(torch.randn(256 * 100, 200), torch.randn(256 * 100, 1))
loader = DataLoader(data, batch_size=256, shuffle=True)
model = nn.Sequential(
    nn.Linear(200, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, 512), nn.GELU(),
    nn.LayerNorm(512), nn.Linear(512, 1),
)  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps = 0
start = time.perf_counter()
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
