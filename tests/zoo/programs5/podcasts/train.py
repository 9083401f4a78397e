"""Which podcast next? Matrix factorisation with a bias and a small network on top."""

import argparse
import time

import torch
from torch import nn


class Listener(nn.Module):
    def __init__(self, n_users, n_shows, dim=48, sparse=False):
        super().__init__()
        self.users = nn.Embedding(n_users, dim, sparse=sparse)
        self.shows = nn.Embedding(n_shows, dim, sparse=sparse)
        self.top = nn.Sequential(
            nn.Linear(3 * dim, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
        )

    def forward(self, user, show):
        u, s = self.users(user), self.shows(show)
        return self.top(torch.cat([u, s, u * s], 1))[:, 0]


def optimizers(model, sparse):
    tables = [*model.users.parameters(), *model.shows.parameters()]
    if sparse:
        return [
            torch.optim.SparseAdam(tables, lr=1e-3),
            torch.optim.Adam(model.top.parameters(), lr=1e-3),
        ]
    return [torch.optim.Adam(model.parameters(), lr=1e-3)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--users", type=int, default=120000)
    parser.add_argument("--shows", type=int, default=30000)
    parser.add_argument("--sparse", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Listener(args.users, args.shows, sparse=args.sparse)
    updates = optimizers(model, args.sparse)
    start = time.perf_counter()
    for step in range(args.steps):
        user = torch.randint(args.users, (args.batch,))
        show = torch.randint(args.shows, (args.batch,))
        heard = ((user + show) % 7 < 3).float()
        loss = nn.functional.binary_cross_entropy_with_logits(model(user, show), heard)
        for optimizer in updates:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in updates:
            optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
