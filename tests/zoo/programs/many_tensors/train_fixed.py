"""A very deep and narrow residual network."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

DEPTH, WIDTH, STEPS, BATCH = 80, 96, 140, 96


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + 0.1 * torch.relu(self.linear(self.norm(x)))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(STEPS * BATCH, WIDTH)
    y = (x[:, 0] * x[:, 1] > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH)
    model = nn.Sequential(*[Residual(WIDTH) for _ in range(DEPTH)], nn.Linear(WIDTH, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    begin = time.perf_counter()
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")
    print(f"trained {len(loader)} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
