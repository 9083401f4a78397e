"""The same state-space model in torch; the recurrence is a convolution, computed by FFT."""

from __future__ import annotations

import torch
from torch import nn


class StateSpace(nn.Module):
    """h[t] = a h[t-1] + B x[t];  y[t] = C h[t] + D x[t]."""

    def __init__(self, width, states):
        super().__init__()
        self.decay = nn.Parameter(torch.linspace(0.0, 4.0, states))
        self.b = nn.Linear(width, states, bias=False)
        self.c = nn.Linear(states, width, bias=False)
        self.d = nn.Parameter(torch.ones(width))

    def forward(self, x):
        steps = x.shape[1]
        a = torch.sigmoid(self.decay)
        times = torch.arange(steps, device=x.device)
        kernel = (1 - a) * a ** times[:, None]
        size = 2 * steps
        driven = torch.fft.rfft(self.b(x), size, dim=1)
        h = torch.fft.irfft(driven * torch.fft.rfft(kernel, size, dim=0), size, dim=1)[:, :steps]
        return self.c(h) + self.d * x


class Decoder(nn.Module):
    """Spikes in, velocity out: state spaces with a nonlinearity in between."""

    def __init__(self, neurons, width=32, states=32, depth=2):
        super().__init__()
        self.encoder = nn.Linear(neurons, width)
        self.layers = nn.ModuleList(StateSpace(width, states) for _ in range(depth))
        self.dropout = nn.Dropout(0.05)
        self.decoder = nn.Linear(width, 2)

    def forward(self, spikes):
        x = self.encoder(spikes)
        for layer in self.layers:
            x = x + self.dropout(nn.functional.gelu(layer(x)))
        return self.decoder(x)
