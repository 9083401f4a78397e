"""Inflow of a reservoir from hourly weather: a patch transformer."""

import argparse
import time

import numpy as np
import pandas as pd
import torch
from torch import nn

COLUMNS = ["rain", "temperature", "snow", "pressure", "wind", "inflow"]
PAST, AHEAD, PATCH = 192, 24, 8


def load_frame(hours=4000, seed=6):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)
    rain = rng.gamma(0.3, 2.0, hours)
    frame = pd.DataFrame(
        {
            "rain": rain,
            "temperature": 10 + 8 * np.sin(2 * np.pi * t / 24) + rng.normal(0, 1, hours),
            "snow": np.clip(np.cumsum(rng.normal(0, 0.1, hours)), 0, None),
            "pressure": 1013 + np.cumsum(rng.normal(0, 0.2, hours)),
            "wind": rng.weibull(2.0, hours) * 5,
        }
    )
    frame["inflow"] = frame["rain"].rolling(36, min_periods=1).mean() * 3 + rng.normal(
        0, 0.1, hours
    )
    return frame


class Windows(torch.utils.data.Dataset):
    def __init__(self, frame, precision):
        values = frame[COLUMNS].to_numpy()
        values = (values - values.mean(0)) / values.std(0)
        self.values = torch.from_numpy(values.astype(precision))

    def __len__(self):
        return len(self.values) - PAST - AHEAD

    def __getitem__(self, i):
        return self.values[i : i + PAST], self.values[i + PAST : i + PAST + AHEAD, -1]


class PatchFormer(nn.Module):
    def __init__(self, width=96, layers=2, heads=4):
        super().__init__()
        self.patch = nn.Linear(PATCH * len(COLUMNS), width)
        self.place = nn.Parameter(torch.zeros(PAST // PATCH, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, AHEAD)

    def forward(self, x):
        x = self.patch(x.unflatten(1, (-1, PATCH)).flatten(2)) + self.place
        return self.head(self.encoder(x).mean(1))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=["float64", "float32"], default="float64")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=1e-3)
    return parser.parse_args()


def main():
    args = parse()
    torch.set_num_threads(1)
    torch.manual_seed(6)
    frame = load_frame()
    split = 2136
    train = Windows(frame[:split], args.precision)
    valid = Windows(frame[split : split + 280], args.precision)
    loader = torch.utils.data.DataLoader(train, args.batch_size, shuffle=True)
    valid_loader = torch.utils.data.DataLoader(valid, 64)

    model = PatchFormer().to(train.values.dtype)
    criterion = nn.HuberLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, args.lr, epochs=args.epochs, steps_per_epoch=len(loader)
    )
    best, steps = float("inf"), 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        model.train()
        metrics = {"train": 0.0, "valid": 0.0}
        for past, future in loader:
            loss = criterion(model(past), future)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            metrics["train"] += loss.item() / len(loader)
            steps += 1
        model.eval()
        with torch.no_grad():
            for past, future in valid_loader:
                metrics["valid"] += criterion(model(past), future).item() / len(valid_loader)
        best = min(best, metrics["valid"])
        print(f"epoch {epoch}  " + "  ".join(f"{k} {v:.4f}" for k, v in metrics.items()))
    seconds = time.perf_counter() - start
    print(f"best {best:.4f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
