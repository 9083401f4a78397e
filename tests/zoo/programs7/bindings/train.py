import argparse
import time

import losses
import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self, inputs, width=600, out=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, out),
        )

    def forward(self, x):
        return F.normalize(self.layers(x), dim=-1)


def pairs(count, batch, seed):
    g = torch.Generator().manual_seed(seed)
    ligands = torch.randn(count, 300, generator=g)
    pockets = ligands @ torch.randn(300, 240, generator=g) / 17 + 0.1
    while True:
        for index in torch.randperm(count, generator=g).split(batch):
            yield ligands[index], pockets[index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--loss", default="triplet", choices=["triplet", "triplet_matrix"])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)

    ligand, pocket = Tower(300), Tower(240)
    criterion = getattr(losses, args.loss)
    opt = torch.optim.SGD([*ligand.parameters(), *pocket.parameters()], lr=0.1, momentum=0.9)
    stream = pairs(128 * 30, args.batch, seed=4)
    began = time.perf_counter()
    for step in range(1, args.steps + 1):
        a, b = next(stream)
        loss = criterion(ligand(a), pocket(b))
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 30 == 0:
            print(f"{step:4d} {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
