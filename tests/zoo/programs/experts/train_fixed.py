"""A mixture of many very small experts."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Experts(nn.Module):
    def __init__(self, count, inputs, width):
        super().__init__()
        self.up = nn.Parameter(torch.randn(count, inputs, width) / inputs**0.5)
        self.down = nn.Parameter(torch.randn(count, width, inputs) / width**0.5)
        self.gate = nn.Linear(inputs, count)

    def forward(self, x):
        weights = self.gate(x).softmax(-1)
        hidden = torch.relu(torch.einsum("bi,eiw->ebw", x, self.up))
        return torch.einsum("ebw,ewi,be->bi", hidden, self.down, weights)


class Mixture(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.first = Experts(24, inputs, 16)
        self.second = Experts(24, inputs, 16)
        self.out = nn.Linear(inputs, 1)

    def forward(self, x):
        x = x + self.first(x)
        return self.out(x + self.second(x))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(120 * 32, 16)
    loader = DataLoader(TensorDataset(x, x[:, :1] * x[:, 1:2]), batch_size=32)
    model = Mixture(16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")
    print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
