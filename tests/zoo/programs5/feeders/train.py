import argparse
import random
import time

import torch
import torch.distributed as dist
from grids import make_grids, share
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class FlowNet(nn.Module):
    def __init__(self, dim=64, depth=3):
        super().__init__()
        self.enter = nn.Linear(24, dim)
        self.message = nn.ModuleList(nn.Linear(2 * dim, dim) for _ in range(depth))
        self.update = nn.ModuleList(nn.Linear(2 * dim, dim) for _ in range(depth))
        self.leave = nn.Linear(dim, 1)

    def forward(self, load, edges):
        h = torch.relu(self.enter(load))
        for message, update in zip(self.message, self.update):
            m = torch.relu(message(torch.cat([h[edges[0]], h[edges[1]]], 1)))
            gathered = torch.zeros_like(h).index_add_(0, edges[1], m)
            h = h + torch.relu(update(torch.cat([h, gathered], 1)))
        return self.leave(h)[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", choices=["blocks", "turns"], default="blocks")
    parser.add_argument("--epochs", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    grids = share(make_grids(96), dist.get_rank(), dist.get_world_size(), args.share)
    model = DistributedDataParallel(FlowNet())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    order = random.Random(0)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        order.shuffle(grids)
        for load, edges, drop in grids:
            loss = nn.functional.mse_loss(model(load, edges), drop)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {loss.item():.4f}")
    seconds = time.perf_counter() - start
    if dist.get_rank() == 0:
        print(f"trained {steps} steps in {seconds:.3f} s")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
