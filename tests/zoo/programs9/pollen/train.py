"""Pollen count from the weather, everything in memory."""

import time

import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(0)
n, batch = 25_600, 256
x, y = torch.randn(n, 128), torch.randn(n, 1)
model = nn.Sequential(
    nn.Linear(128, 768), nn.ReLU(), nn.Linear(768, 768), nn.ReLU(), nn.Linear(768, 1)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
steps = 0
start = time.perf_counter()
for epoch in range(2):
    for rows in torch.randperm(n).split(batch):
        loss = nn.functional.smooth_l1_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print(f"epoch {epoch}: loss {loss.item():.3f}")
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
