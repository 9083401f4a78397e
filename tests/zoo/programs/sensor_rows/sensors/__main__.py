"""Find faulty sensors: python -m sensors [--parse-first]"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader

from sensors.dataset import ParsedWindows, Windows


class Detector(nn.Module):
    def __init__(self, features=8, width=64):
        super().__init__()
        self.rnn = nn.GRU(features, width, batch_first=True)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        _, state = self.rnn(x)
        return self.out(state[-1])


def train(dataset, epochs):
    loader = DataLoader(dataset, 32, shuffle=True, num_workers=2, persistent_workers=True)
    model = Detector()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    count = 0
    for _ in range(epochs):
        for windows, labels in loader:
            optimizer.zero_grad(set_to_none=True)
            loss = criterion(model(windows), labels)
            loss.backward()
            optimizer.step()
            count += 1
    return count, loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parse-first", action="store_true")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    dataset = (ParsedWindows if args.parse_first else Windows)(960)
    start = time.perf_counter()
    count, loss = train(dataset, args.epochs)
    print(f"last loss {loss:.3f}")
    print(f"trained {count} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
