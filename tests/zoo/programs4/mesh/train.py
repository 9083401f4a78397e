import argparse
import time

import torch
from spectral import HeatNet, Mesh


def simulate(n, mesh, side):
    """Sources, conductivity, and a smoothed field that stands in for the solution."""
    generator = torch.Generator().manual_seed(0)
    source = (torch.rand(n, side, side, generator=generator) < 0.03).float()
    conductivity = 0.5 + torch.rand(n, 1, 1, generator=generator).expand(n, side, side)
    field = source[:, None]
    for _ in range(4):
        field = torch.nn.functional.avg_pool2d(field, 5, 1, 2)
    x = torch.stack([source, conductivity], -1).flatten(1, 2)
    return x, (10 * field[:, 0] / conductivity).flatten(1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", type=int, default=24)
    parser.add_argument("--steps", type=int, default=280)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--keep-modes", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    mesh = Mesh(args.side, keep=args.keep_modes)
    inputs, targets = simulate(600, mesh, args.side)
    net = HeatNet(mesh)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    t_start = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(len(inputs), (args.batch,))
        loss = ((net(inputs[pick]) - targets[pick]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 50 == 0:
            print(f"step {step + 1} loss {loss.item():.5f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - t_start:.3f} s")
