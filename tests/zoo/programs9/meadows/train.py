"""Plants in a meadow as a set: attention over the plants, then one label."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class PlantAttention(nn.Module):
    def __init__(self, dim, product):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.product = product
        self.scale = dim**-0.5

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if self.product == "sum":
            scores = (q.unsqueeze(2) * k.unsqueeze(1)).sum(-1)
        else:
            scores = q @ k.transpose(1, 2)
        return torch.softmax(scores * self.scale, dim=-1) @ v


class Block(nn.Module):
    def __init__(self, dim, product):
        super().__init__()
        self.attention = PlantAttention(dim, product)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Meadow(nn.Module):
    def __init__(self, product, dim=64):
        super().__init__()
        self.block = Block(dim, product)
        self.head = nn.Linear(dim, 12)

    def forward(self, x):
        return self.head(self.block(x).mean(1))


parser = argparse.ArgumentParser()
parser.add_argument("--product", choices=["sum", "matmul"], default="sum")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
data = TensorDataset(torch.randn(960, 64, 64), torch.randint(0, 12, (960,)))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = Meadow(args.product)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
steps = 0
start = time.perf_counter()
for _ in range(2):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
