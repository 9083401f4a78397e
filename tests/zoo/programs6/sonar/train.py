import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from shards import Pings, write_shards

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--passes", type=int, default=2)
parser.add_argument("--prefetch", type=int, default=2)
args = parser.parse_args()

torch.manual_seed(2)
torch.set_num_threads(1)

net = nn.Sequential(
    nn.Conv2d(1, 8, 5, stride=2, padding=2),
    nn.ReLU(),
    nn.Conv2d(8, 16, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 24, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(24 * 144, 6),
)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
paths = write_shards("shards", shards=5, samples=args.batch * 24)
loader = DataLoader(
    Pings(paths, args.passes), args.batch, num_workers=1, prefetch_factor=args.prefetch
)

step = 0
start = time.perf_counter()
for pings, kinds in loader:
    loss = nn.functional.cross_entropy(net(pings), kinds)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1
    if step % 60 == 0:
        print(f"{step:5d}  {loss.item():.4f}")
print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")
