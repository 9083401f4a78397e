"""Two towers for a reading club: members and books, sampled softmax in the batch."""

import argparse
import time

import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, entries, dim, sparse):
        super().__init__()
        self.table = nn.Embedding(entries, dim, sparse=sparse)
        self.mlp = nn.Sequential(nn.Linear(dim, 512), nn.ReLU(), nn.Linear(512, 64))

    def forward(self, ids):
        return self.mlp(self.table(ids))


class Trainer:
    def __init__(self, members, books, dim, sparse):
        self.member = Tower(members, dim, sparse)
        self.book = Tower(books, dim, sparse)
        tables = [self.member.table.weight, self.book.table.weight]
        dense = [*self.member.mlp.parameters(), *self.book.mlp.parameters()]
        if sparse:
            self.optimizers = [
                torch.optim.SparseAdam(tables, lr=1e-3),
                torch.optim.Adam(dense, lr=1e-3),
            ]
        else:
            self.optimizers = [torch.optim.Adam(tables + dense, lr=1e-3)]

    def step(self, members, books):
        logits = self.member(members) @ self.book(books).t()
        loss = nn.functional.cross_entropy(logits, torch.arange(len(members)))
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--members", type=int, default=40000)
    parser.add_argument("--books", type=int, default=25000)
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    trainer = Trainer(args.members, args.books, 48, args.sparse)
    members = torch.randint(args.members, (args.steps, 768))
    books = (members * 31 + torch.randint(40, members.shape)) % args.books
    total = torch.zeros(())
    begin = time.perf_counter()
    for k in range(args.steps):
        total += trainer.step(members[k], books[k])
    seconds = time.perf_counter() - begin
    print(f"mean loss {total.item() / args.steps:.3f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
