import argparse
import time

import torch
from strokes import AXES, SAMPLES, load_strokes
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

PATCH = 16


class WearNet(nn.Module):
    """Mixes the patches of a stroke along time and along channels in turn."""

    def __init__(self, width=128, depth=3):
        super().__init__()
        patches = SAMPLES // PATCH
        self.embed = nn.Linear(AXES * PATCH, width)
        self.along_time = nn.ModuleList(nn.Linear(patches, patches) for _ in range(depth))
        self.along_width = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))
            for _ in range(depth)
        )
        self.head = nn.Linear(width, 1)

    def forward(self, strokes):
        patches = strokes.unflatten(2, (-1, PATCH)).transpose(1, 2).flatten(2)
        x = self.embed(patches)
        for time_layer, width_layer in zip(self.along_time, self.along_width):
            x = x + time_layer(x.transpose(1, 2)).transpose(1, 2)
            x = x + width_layer(x)
        return self.head(x.mean(dim=1)).squeeze(-1)


def train(model, loader, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    steps = 0
    for epoch in range(epochs):
        for strokes, wear in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(model(strokes), wear)
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: loss {loss.item():.5f}")
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--strokes", type=int, default=1280)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--precision", choices=["float32", "float64"])
    args = parser.parse_args()

    torch.manual_seed(4)
    torch.set_num_threads(1)
    dataset = load_strokes(args.strokes, seed=4, precision=args.precision)
    loader = DataLoader(dataset, batch_size=48, shuffle=True, drop_last=True)
    model = WearNet().to(dataset.tensors[0].dtype)
    start = time.perf_counter()
    steps = train(model, loader, args.epochs)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
