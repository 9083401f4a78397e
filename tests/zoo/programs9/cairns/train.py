"""Many small experts, one for each cairn on the route."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CAIRNS = 300


class Expert(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.shift = nn.Parameter(torch.zeros(dim))
        self.rank1 = nn.Parameter(torch.randn(dim) * 0.1)


class Route(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.experts = nn.ModuleList(Expert(dim) for _ in range(CAIRNS))
        self.body = nn.Sequential(nn.Linear(dim, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, x, cairn):
        gain = torch.stack([e.gain for e in self.experts])[cairn]
        shift = torch.stack([e.shift for e in self.experts])[cairn]
        rank1 = torch.stack([e.rank1 for e in self.experts])[cairn]
        x = x * gain + shift + rank1 * (x * rank1).sum(1, keepdim=True)
        return self.body(x).squeeze(1)


parser = argparse.ArgumentParser()
parser.add_argument("--fused", action="store_true")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
n = 256 * 50
data = TensorDataset(torch.randn(n, 32), torch.randint(0, CAIRNS, (n,)), torch.randn(n))
loader = DataLoader(data, batch_size=256, shuffle=True)
model = Route()
optimizer = torch.optim.AdamW(
    model.parameters(), lr=1e-3, foreach=False, fused=True if args.fused else None
)
steps = 0
start = time.perf_counter()
for _ in range(2):
    for x, cairn, y in loader:
        loss = nn.functional.mse_loss(model(x, cairn), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
