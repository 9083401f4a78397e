"""Click prediction: each of the many fields has an embedding and a bias of its own."""

import argparse
import time

import torch
from lion import FlatLion, Lion
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FieldModel(nn.Module):
    def __init__(self, fields, values, width):
        super().__init__()
        self.tables = nn.ParameterList(
            nn.Parameter(torch.randn(values, width) * 0.1) for _ in range(fields)
        )
        self.scales = nn.ParameterList(nn.Parameter(torch.ones(width)) for _ in range(fields))
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(1)) for _ in range(fields))
        self.top = nn.Sequential(nn.Linear(fields * width, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, rows):
        tables = torch.stack(list(self.tables))
        fields = torch.arange(len(tables))
        x = tables[fields, rows] * torch.stack(list(self.scales))
        x = x + torch.stack(list(self.biases))
        return self.top(x.flatten(1))[:, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--optimizer", choices=["lion", "flat-lion"], default="lion")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    fields, values = 250, 20
    rows = torch.randint(0, values, (13_440, fields))
    clicks = (rows[:, :10].sum(1) > 95).float()
    loader = DataLoader(TensorDataset(rows, clicks), batch_size=64)
    model = FieldModel(fields, values, 8)
    make = {"lion": Lion, "flat-lion": FlatLion}[args.optimizer]
    optimizer = make(model.parameters(), lr=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    steps, begin = 0, time.perf_counter()
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print(f"loss {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
