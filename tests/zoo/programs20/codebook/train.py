"""Question 9: radial basis functions on top of a small perceptron."""

import argparse
import time

import torch
from torch import nn

from layers import ExpandedPrototypes, Prototypes

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=95)
parser.add_argument("--expanded", action="store_true")
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(9)

layer = ExpandedPrototypes if args.expanded else Prototypes
model = nn.Sequential(
    nn.Linear(128, 768),
    nn.ReLU(),
    nn.Linear(768, 768),
    nn.ReLU(),
    nn.Linear(768, 48),
    layer(48, 384),
    nn.Linear(384, 10),
)
inputs = torch.randn(4096, 128)
targets = (inputs[:, :10]).argmax(dim=1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

start = time.perf_counter()
for step in range(args.steps):
    first = step * 256 % 4096
    x, y = inputs[first : first + 256], targets[first : first + 256]
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")
