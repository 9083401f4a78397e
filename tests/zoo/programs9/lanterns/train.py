"""Denoises pictures of lanterns; the loss curve is drawn at the end."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.spread = nn.Conv2d(1, 48, 1)
        self.gather = nn.Conv2d(48, 1, 1)

    def forward(self, x):
        hidden = torch.relu(self.spread(x))
        return self.gather(hidden * hidden)


def train(model, loader, keep):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    curve = []
    for clean, noise in loader:
        output = model(clean + noise)
        error = (output - clean).abs()
        loss = error.mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=keep == "tensor")
        optimizer.step()
        curve.append(loss if keep == "tensor" else loss.item())
    return curve


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--curve", choices=["tensor", "number"], default="tensor")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(480, 1, 64, 64), torch.randn(480, 1, 64, 64) * 0.1)
    model = Denoiser()
    start = time.perf_counter()
    curve = train(model, DataLoader(data, batch_size=4, shuffle=True), args.curve)
    seconds = time.perf_counter() - start
    print(" ".join(f"{float(value):.3f}" for value in curve[::16]))
    print(f"trained {len(curve)} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
