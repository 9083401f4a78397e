"""Message passing on small random molecules, to regress a made-up solubility."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

ATOMS = 9
MOST = 28


class Molecules(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(5)
        self.items = []
        for _ in range(count):
            size = int(rng.integers(14, MOST + 1))
            atoms = rng.integers(0, ATOMS, size)
            tree = [(int(rng.integers(0, i)), i) for i in range(1, size)]
            rings = [tuple(rng.choice(size, 2, replace=False)) for _ in range(size // 4)]
            bonds = np.array(tree + rings, dtype=np.int64)
            orders = rng.integers(1, 4, len(bonds)).astype(np.float32)
            target = float(np.sin(atoms).sum() + 0.1 * orders.sum())
            self.items.append((atoms, bonds, orders, target))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate_dense(batch):
    atoms = torch.zeros(len(batch), MOST, ATOMS)
    adjacency = torch.zeros(len(batch), MOST, MOST)
    targets = torch.zeros(len(batch))
    for row, (kinds, bonds, orders, target) in enumerate(batch):
        for i, kind in enumerate(kinds):
            atoms[row, i, kind] = 1.0
        for (i, j), order in zip(bonds, orders.tolist()):
            adjacency[row, i, j] = order
            adjacency[row, j, i] = order
        targets[row] = target
    return atoms, adjacency, targets


def collate_indexed(batch):
    kinds, bonds, orders, targets = zip(*batch)
    count = len(batch)
    atom_row = np.repeat(np.arange(count), [len(each) for each in kinds])
    atom_at = np.concatenate([np.arange(len(each)) for each in kinds])
    bond_row = np.repeat(np.arange(count), [len(each) for each in orders])
    i, j = np.concatenate(bonds).T
    order = np.concatenate(orders)
    atoms = np.zeros((count, MOST, ATOMS), np.float32)
    atoms[atom_row, atom_at, np.concatenate(kinds)] = 1.0
    adjacency = np.zeros((count, MOST, MOST), np.float32)
    adjacency[bond_row, i, j] = order
    adjacency[bond_row, j, i] = order
    targets = torch.tensor(targets)
    return torch.from_numpy(atoms), torch.from_numpy(adjacency), targets


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.own = nn.Linear(width, width)
        self.message = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, h, adjacency):
        update = self.own(h) + torch.bmm(adjacency, self.message(h))
        return self.norm(h + torch.relu(update))


class GraphNet(nn.Module):
    def __init__(self, width=96, depth=3):
        super().__init__()
        self.embed = nn.Linear(ATOMS, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(depth))
        self.out = nn.Linear(width, 1)

    def forward(self, atoms, adjacency):
        h = self.embed(atoms)
        for layer in self.layers:
            h = layer(h, adjacency)
        return self.out(h.sum(1)).squeeze(1)


def train(args):
    collate = {"dense": collate_dense, "indexed": collate_indexed}[args.collate]
    loader = DataLoader(
        Molecules(4096),
        batch_size=args.batch,
        shuffle=True,
        collate_fn=collate,
        num_workers=2,
        persistent_workers=True,
    )
    model = GraphNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = 0
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        losses = []
        for atoms, adjacency, targets in loader:
            loss = nn.functional.mse_loss(model(atoms, adjacency), targets)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
            steps += 1
        print(f"[{epoch}] mse {np.mean(losses):.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--collate", default="dense")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train(parser.parse_args())
