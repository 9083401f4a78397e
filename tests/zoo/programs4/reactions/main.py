"""Yield regression on small graphs, with accelerate."""

import argparse
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from graphs import BATCHERS, N_ATOMS, N_BONDS, Reactions
from torch import nn
from torch.utils.data import DataLoader


class MessagePassing(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.edge = nn.Linear(N_BONDS, 8, bias=False)
        self.message = nn.Linear(dim, 8 * dim)
        self.update = nn.GRUCell(dim, dim)

    def forward(self, h, bonds):
        b, n, d = h.shape
        weights = self.edge(bonds)  # b n n 8
        messages = self.message(h).view(b, n, 8, d)
        m = torch.einsum("bijk,bjkd->bid", weights, messages) / 4
        return self.update(m.reshape(-1, d), h.reshape(-1, d)).view(b, n, d)


class YieldNet(nn.Module):
    def __init__(self, dim=64, rounds=3):
        super().__init__()
        self.embed = nn.Embedding(N_ATOMS + 1, dim, padding_idx=N_ATOMS)
        self.rounds = nn.ModuleList(MessagePassing(dim) for _ in range(rounds))
        self.readout = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 1))

    def forward(self, atoms, bonds):
        real = (atoms != N_ATOMS).unsqueeze(-1)
        h = self.embed(atoms)
        for layer in self.rounds:
            h = layer(h, bonds) * real
        return self.readout(h.sum(1) / real.sum(1)).squeeze(-1)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--batcher", choices=list(BATCHERS), default="dense")
    ap.add_argument("--n-graphs", type=int, default=1600)
    ap.add_argument("--epochs", type=int, default=3)
    ap.add_argument("--batch-size", type=int, default=32)
    args = ap.parse_args()
    set_seed(5)
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)

    loader = DataLoader(
        Reactions(args.n_graphs),
        batch_size=args.batch_size,
        shuffle=True,
        collate_fn=BATCHERS[args.batcher](),
    )
    model = YieldNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    step = 0
    began = time.perf_counter()
    for epoch in range(args.epochs):
        for atoms, bonds, y in loader:
            loss = nn.functional.smooth_l1_loss(model(atoms, bonds), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
        accelerator.print(f"epoch {epoch} loss {loss.item():.5f}")
    print(f"trained {step} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
