"""Load forecasting for 200 substations, TCN. Settings as in the job script of the cluster."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--cpus", type=int, default=4)
parser.add_argument("--steps", type=int, default=66)
args = parser.parse_args()
torch.set_num_threads(args.cpus)
torch.manual_seed(16)


class TCN(nn.Module):
    def __init__(self, ch=48):
        super().__init__()
        self.inp = nn.Conv1d(4, ch, 1)
        self.convs = nn.ModuleList(nn.Conv1d(ch, ch, 3, dilation=2**i) for i in range(6))
        self.out = nn.Conv1d(ch, 1, 1)

    def forward(self, x):
        x = self.inp(x)
        for i, conv in enumerate(self.convs):
            x = x + F.relu(conv(F.pad(x, (2 * 2**i, 0))))
        return self.out(x)[:, 0, -24:]


series = torch.randn(200, 4, 2000).cumsum(-1) / 20
model = TCN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
start = time.perf_counter()
for step in range(args.steps):
    rows = torch.randint(0, 200, (48,))
    t = int(torch.randint(0, 1700, (1,)))
    x = series[rows, :, t : t + 192]
    y = series[rows, 0, t + 192 : t + 216]
    loss = F.l1_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(step, loss.item())
print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")
