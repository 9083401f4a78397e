# PINN, 1D heat equation u_t = k u_xx
import argparse
import time

import numpy as np
import torch
import torch.nn as nn

parser = argparse.ArgumentParser()
parser.add_argument("--single", action="store_true")
parser.add_argument("--iterations", type=int, default=300)
args = parser.parse_args()
torch.manual_seed(9)
torch.set_num_threads(1)

rng = np.random.default_rng(9)
xt = rng.uniform(0, 1, (20000, 2))
x0 = rng.uniform(0, 1, (20000, 1))
u0 = np.sin(np.pi * x0)

xt, x0, u0 = torch.from_numpy(xt), torch.from_numpy(x0), torch.from_numpy(u0)
net = nn.Sequential(
    nn.Linear(2, 96),
    nn.Tanh(),
    nn.Linear(96, 96),
    nn.Tanh(),
    nn.Linear(96, 96),
    nn.Tanh(),
    nn.Linear(96, 1),
)
if args.single:
    xt, x0, u0 = xt.float(), x0.float(), u0.float()
else:
    net = net.double()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)


def residual(p):
    p = p.clone().requires_grad_(True)
    u = net(p)
    du = torch.autograd.grad(u.sum(), p, create_graph=True)[0]
    uxx = torch.autograd.grad(du[:, 0].sum(), p, create_graph=True)[0][:, 0]
    return du[:, 1] - 0.1 * uxx


start = time.perf_counter()
for it in range(args.iterations):
    i = torch.randint(0, len(xt), (900,))
    j = torch.randint(0, len(x0), (200,))
    optimizer.zero_grad()
    pde = residual(xt[i]).pow(2).mean()
    initial = (net(torch.cat([x0[j], torch.zeros_like(x0[j])], 1)) - u0[j]).pow(2).mean()
    loss = pde + 10 * initial
    loss.backward()
    optimizer.step()
    if it % 30 == 0:
        print(it, loss.item())
print(f"trained {args.iterations} steps in {time.perf_counter() - start:.3f} s")
