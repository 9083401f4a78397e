"""Visitors of abbeys: smoothed series at four scales, then a small network."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LENGTH = 128
WIDTH = 32


class Smoothing(nn.Module):
    """Exponential moving averages with four rates, side by side."""

    def __init__(self, form):
        super().__init__()
        self.form = form
        self.rates = [0.1, 0.2, 0.4, 0.8]
        lag = torch.arange(LENGTH)[:, None] - torch.arange(LENGTH)[None, :]
        rows = [
            torch.where(lag >= 0, rate * (1 - rate) ** lag.clamp(min=0), 0.0) for rate in self.rates
        ]
        self.register_buffer("kernel", torch.cat(rows))

    def forward(self, x):
        if self.form == "matrix":
            batch = x.shape[0]
            columns = x.transpose(0, 1).reshape(LENGTH, -1)
            smooth = (self.kernel @ columns).view(4, LENGTH, batch, WIDTH)
            return smooth.permute(2, 1, 0, 3).reshape(batch, LENGTH, 4 * WIDTH)
        scales = []
        for rate in self.rates:
            state = torch.zeros_like(x[:, 0])
            states = []
            for value in x.unbind(dim=1):
                state = (1 - rate) * state + rate * value
                states.append(state)
            scales.append(torch.stack(states, dim=1))
        return torch.cat(scales, dim=-1)


class Visitors(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.enter = nn.Linear(8, WIDTH)
        self.smoothing = Smoothing(form)
        self.network = nn.Sequential(
            nn.Linear(4 * WIDTH, 288), nn.ReLU(), nn.Linear(288, 128), nn.ReLU()
        )
        self.head = nn.Linear(128, 1)

    def forward(self, x):
        return self.head(self.network(self.smoothing(self.enter(x)))).squeeze(-1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--smoothing", choices=["steps", "matrix"], default="steps")
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    series = torch.randn(args.steps * 32, LENGTH, 8)
    loader = DataLoader(TensorDataset(series, series.mean(dim=-1)), batch_size=32, shuffle=True)
    model = Visitors(args.smoothing)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    steps = 0
    start = time.perf_counter()
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.4f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
