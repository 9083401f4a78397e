"""Message passing on dense adjacency matrices, predicting a molecule's energy."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

import graphs


class Passing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.neighbours = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x, adjacency):
        update = self.own(x) + torch.bmm(adjacency, self.neighbours(x)) / 6.0
        return self.norm(x + torch.relu(update))


class EnergyNet(nn.Module):
    def __init__(self, width=128, depth=3):
        super().__init__()
        self.embed = nn.Linear(32, width)
        self.layers = nn.ModuleList(Passing(width) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, x, adjacency):
        h = self.embed(x)
        for layer in self.layers:
            h = layer(h, adjacency)
        return self.out(h.mean(dim=1)).squeeze(-1)


def run(collate, epochs=3, batch_size=32):
    molecules = graphs.random_molecules(batch_size * 50)
    loader = DataLoader(
        molecules,
        batch_size,
        shuffle=True,
        collate_fn=collate,
        num_workers=1,
        persistent_workers=True,
    )
    net = EnergyNet()
    opt = torch.optim.Adam(net.parameters(), lr=3e-4)
    n, began = 0, time.perf_counter()
    for epoch in range(epochs):
        total = 0.0
        for x, adjacency, energy in loader:
            loss = nn.functional.smooth_l1_loss(net(x, adjacency), energy)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            total += loss.item()
            n += 1
        print(f"[{epoch}] {total / len(loader):.4f}")
    return n, time.perf_counter() - began


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--np", action="store_true")
    torch.manual_seed(1)
    torch.set_num_threads(1)
    done, seconds = run(graphs.dense_batch_np if cli.parse_args().np else graphs.dense_batch)
    print(f"trained {done} steps in {seconds:.3f} s")
