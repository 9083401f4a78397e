"""Traffic forecasts on a road network: diffusion convolution over the graph of crossings."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NODES, HISTORY, HORIZON = 640, 12, 3


def road_network():
    gen = torch.Generator().manual_seed(13)
    place = torch.rand(NODES, 2, generator=gen)
    return torch.exp(-torch.cdist(place, place).square() / 0.01)


def diffusion(adjacency, hops):
    """Return the transition matrices for one to ``hops`` hops."""
    walk = adjacency / adjacency.sum(1, keepdim=True)
    powers = [walk]
    for _ in range(hops - 1):
        powers.append(powers[-1] @ walk)
    return torch.stack(powers)


class RoadNet(nn.Module):
    def __init__(self, adjacency, hops, keep, width=32):
        super().__init__()
        self.hops = hops
        self.register_buffer("adjacency", adjacency)
        self.register_buffer("supports", diffusion(adjacency, hops) if keep else None)
        self.enter = nn.Linear(HISTORY, width)
        self.mix1 = nn.Linear(width * (hops + 1), width)
        self.mix2 = nn.Linear(width * (hops + 1), width)
        self.leave = nn.Linear(width, HORIZON)

    def spread(self, h, supports):
        return torch.cat([h, *(support @ h for support in supports)], -1)

    def forward(self, x):
        supports = self.supports
        if supports is None:
            supports = diffusion(self.adjacency, self.hops)
        h = torch.relu(self.enter(x))
        h = h + torch.relu(self.mix1(self.spread(h, supports)))
        h = h + torch.relu(self.mix2(self.spread(h, supports)))
        return self.leave(h)


def make_loader(batch_size):
    gen = torch.Generator().manual_seed(14)
    flow = torch.randn(320, NODES, HISTORY + HORIZON, generator=gen).cumsum(-1)
    data = TensorDataset(flow[..., :HISTORY], flow[..., HISTORY:])
    return DataLoader(data, batch_size, shuffle=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep-supports", action="store_true")
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(13)
    loader = make_loader(4)
    model = RoadNet(road_network(), 4, args.keep_supports)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for past, future in loader:
            loss = nn.functional.l1_loss(model(past), future)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
