"""Add numbers in a long sequence, with an LSTM written out by hand."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class HandLSTM(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.width = width
        self.x = nn.Linear(inputs, 4 * width)
        self.h = nn.Linear(width, 4 * width, bias=False)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], self.width)
        c = h
        for t in range(x.shape[1]):
            gates = self.x(x[:, t]) + self.h(h)
            i, f, g, o = gates.chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


class LSTM(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.rnn = nn.LSTM(inputs, width, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0][:, -1]


class Adder(nn.Module):
    def __init__(self, core, width):
        super().__init__()
        self.core = core
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.core(x))[:, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--core", choices=["hand", "torch"], default="hand")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    steps, batch, length, width = 80, 16, 100, 24
    x = torch.rand(steps * batch, length, 2)
    x[..., 1] = (x[..., 1] > 0.9).float()
    y = (x[..., 0] * x[..., 1]).sum(1)
    loader = DataLoader(TensorDataset(x, y), batch_size=batch)
    core = (HandLSTM if args.core == "hand" else LSTM)(2, width)
    model = Adder(core, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    begin = time.perf_counter()
    for inputs, sums in loader:
        loss = nn.functional.mse_loss(model(inputs), sums)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"loss {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
