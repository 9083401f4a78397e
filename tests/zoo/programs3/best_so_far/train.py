"""Predict the properties of alloys; the best model is kept."""

import argparse
import time

import torch
from keeper import Keeper
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Maxout(nn.Module):
    def __init__(self, inputs, outputs, pieces=2):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs * pieces)
        self.pieces = pieces

    def forward(self, x):
        return self.linear(x).unflatten(1, (-1, self.pieces)).amax(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep-every", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    composition = torch.rand(7680, 80).softmax(1) * 80
    teacher = torch.randn(80, 10) / 9
    properties = torch.tanh(composition @ teacher)
    loader = DataLoader(TensorDataset(composition, properties), batch_size=48, shuffle=True)
    model = nn.Sequential(Maxout(80, 768), Maxout(768, 768), Maxout(768, 768), nn.Linear(768, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-5, fused=True)
    criterion = nn.MSELoss()
    keeper = Keeper("best.pt", args.keep_every)

    steps = 0
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            keeper.update(loss.item(), model, optimizer)
            steps += 1
        print(f"epoch {epoch}: best {keeper.best:.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
