# Match products with queries: two towers, whose outputs meet in one layer.
import argparse
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--fusion", default="bilinear", choices=["bilinear", "concat"])
parser.add_argument("--batch", type=int, default=128)
parser.add_argument("--steps", type=int, default=260)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

torch.manual_seed(args.seed)
torch.set_num_threads(1)


class Tower(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, width)
        )

    def forward(self, x):
        return self.layers(x)


class Concat(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.linear = nn.Linear(3 * width, out)

    def forward(self, a, b):
        return self.linear(torch.cat([a, b, a * b], 1))


class Matcher(nn.Module):
    def __init__(self, width=96, out=24):
        super().__init__()
        self.query = Tower(192, width)
        self.product = Tower(320, width)
        self.fuse = (
            nn.Bilinear(width, width, out) if args.fusion == "bilinear" else Concat(width, out)
        )
        self.score = nn.Linear(out, 1)

    def forward(self, query, product):
        joint = self.fuse(self.query(query), self.product(product))
        return self.score(torch.relu(joint)).squeeze(1)


queries = torch.randn(8192, 192)
products = torch.randn(8192, 320)
clicked = ((queries[:, :16] * products[:, :16]).sum(1) > 0).float()

model = Matcher()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 50))
loss_fn = nn.BCEWithLogitsLoss()

started = time.perf_counter()
for step in range(args.steps):
    index = torch.randint(0, len(queries), (args.batch,))
    loss = loss_fn(model(queries[index], products[index]), clicked[index])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warmup.step()
    if (step + 1) % 60 == 0:
        print(f"step {step + 1}/{args.steps} loss {loss.item():.4f}")
print(f"trained {args.steps} steps in {time.perf_counter() - started:.3f} s")
