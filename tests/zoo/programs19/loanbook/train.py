"""Loans: a committee of small networks, each with its own view of the columns."""

import argparse
import time

import torch
from torch import nn

MEMBERS, COLUMNS, HIDDEN = 96, 20, 16


class Member(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(COLUMNS, HIDDEN)
        self.second = nn.Linear(HIDDEN, HIDDEN)
        self.last = nn.Linear(HIDDEN, 1)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        return self.last(torch.tanh(self.second(x)))[:, 0]


class Committee(nn.Module):
    """One after the other."""

    def __init__(self):
        super().__init__()
        self.members = nn.ModuleList(Member() for _ in range(MEMBERS))

    def forward(self, x):
        return torch.stack([member(x) for member in self.members])


class StackedLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        layers = [nn.Linear(inputs, outputs) for _ in range(MEMBERS)]
        self.weight = nn.Parameter(torch.stack([layer.weight.detach().t() for layer in layers]))
        self.bias = nn.Parameter(torch.stack([layer.bias.detach()[None] for layer in layers]))

    def forward(self, x):
        return torch.baddbmm(self.bias, x, self.weight)


class StackedCommittee(nn.Module):
    """All together."""

    def __init__(self):
        super().__init__()
        self.first = StackedLinear(COLUMNS, HIDDEN)
        self.second = StackedLinear(HIDDEN, HIDDEN)
        self.last = StackedLinear(HIDDEN, 1)

    def forward(self, x):
        x = torch.tanh(self.first(x.expand(MEMBERS, -1, -1)))
        return self.last(torch.tanh(self.second(x)))[..., 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--stacked", action="store_true")
    parser.add_argument("--steps", type=int, default=280)
    parser.add_argument("--batch", type=int, default=384)
    args = parser.parse_args()
    torch.manual_seed(80)
    torch.set_num_threads(1)
    model = StackedCommittee() if args.stacked else Committee()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=True)
    rows = torch.randn(64 * args.batch, COLUMNS)
    repaid = (rows[:, :5].sum(dim=1) + 0.3 * torch.randn(len(rows)) > 0).float()
    rows, repaid = rows.split(args.batch), repaid.split(args.batch)
    begin = time.perf_counter()
    for step in range(args.steps):
        votes = model(rows[step % 64])
        target = repaid[step % 64].expand_as(votes)
        loss = nn.functional.binary_cross_entropy_with_logits(votes, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.3f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
