"""Forecast how full each station will be."""

import time

import torch
import torch.nn as nn

from .graph import Messages, build


class Forecast(nn.Module):
    def __init__(self, edges, stations, past=12, dim=64, depth=3):
        super().__init__()
        degree = torch.bincount(edges[1], minlength=stations).clamp(min=1).float()[:, None]
        self.register_buffer("edges", edges)
        self.register_buffer("degree", degree)
        self.inp, self.out = nn.Linear(past, dim), nn.Linear(dim, 1)
        self.layers = nn.ModuleList(Messages(dim) for _ in range(depth))

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = layer(x, self.edges, self.degree)
        return self.out(x).squeeze(-1)


def days(counts, past, batch_size):
    """Yield windows of all stations, a batch at a time, in random order."""
    starts = torch.randperm(len(counts) - past)
    for at in starts.split(batch_size):
        window = torch.stack([counts[i : i + past + 1] for i in at.tolist()])
        yield window[:, :-1].transpose(1, 2), window[:, -1]


def fit(stations=600, past=12, batch_size=8, epochs=3):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    edges = build(stations)
    hour = torch.arange(252.0)[:, None]
    counts = torch.sin(hour / 3.8 + torch.rand(1, stations) * 6) + 0.1 * torch.randn(252, stations)
    model = Forecast(edges, stations, past)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, start = 0, time.perf_counter()
    for epoch in range(epochs):
        for x, y in days(counts, past, batch_size):
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch} mse {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
