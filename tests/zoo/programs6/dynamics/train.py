"""A probabilistic ensemble for model-based control: many small networks of the same shape."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


class Member(nn.Sequential):
    def __init__(self, inputs, outputs, hidden):
        super().__init__(
            nn.Linear(inputs, hidden),
            nn.SiLU(),
            nn.Linear(hidden, hidden),
            nn.SiLU(),
            nn.Linear(hidden, outputs),
        )


class Ensemble(nn.Module):
    def __init__(self, size, inputs, outputs, hidden=64):
        super().__init__()
        self.members = nn.ModuleList(Member(inputs, outputs, hidden) for _ in range(size))

    def forward(self, x):
        return torch.stack([member(x) for member in self.members])


class BatchedLinear(nn.Module):
    def __init__(self, size, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, inputs, outputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(size, 1, outputs))

    def forward(self, x):
        return torch.baddbmm(self.bias, x, self.weight)


class StackedEnsemble(nn.Module):
    def __init__(self, size, inputs, outputs, hidden=64):
        super().__init__()
        self.size = size
        self.net = nn.Sequential(
            BatchedLinear(size, inputs, hidden),
            nn.SiLU(),
            BatchedLinear(size, hidden, hidden),
            nn.SiLU(),
            BatchedLinear(size, hidden, outputs),
        )

    def forward(self, x):
        return self.net(x.expand(self.size, *x.shape))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--members", type=int, default=48)
    parser.add_argument("--stacked", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    states = torch.randn(64 * 240, 24)
    targets = torch.randn(64 * 240, 18)
    data = TensorDataset(states, targets)
    batches = BatchSampler(RandomSampler(data), batch_size=64, drop_last=True)
    loader = DataLoader(data, sampler=batches, batch_size=None)
    model = (StackedEnsemble if args.stacked else Ensemble)(args.members, 24, 18)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)

    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 40 == 0:
            print(steps, round(loss.item(), 4))
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
