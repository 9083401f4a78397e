"""Height of the tide from the last days, with a recurrent network."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class CellForecaster(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.hidden = hidden
        self.ih = nn.Linear(8, 4 * hidden)
        self.hh = nn.Linear(hidden, 4 * hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        h = x.new_zeros(len(x), self.hidden)
        c = x.new_zeros(len(x), self.hidden)
        for t in range(x.shape[1]):
            i, f, g, o = (self.ih(x[:, t]) + self.hh(h)).chunk(4, dim=1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.head(h)


class LayerForecaster(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.rnn = nn.LSTM(8, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.rnn(x)
        return self.head(out[:, -1])


parser = argparse.ArgumentParser()
parser.add_argument("--rnn", choices=["cell", "layer"], default="cell")
args = parser.parse_args()
torch.set_num_threads(1)
torch.manual_seed(0)
data = TensorDataset(torch.randn(1600, 72, 8), torch.randn(1600, 1))
loader = DataLoader(data, batch_size=16, shuffle=True)
model = CellForecaster() if args.rnn == "cell" else LayerForecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
steps = 0
start = time.perf_counter()
for x, y in loader:
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
