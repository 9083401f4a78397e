"""Question 6: weather charts. Most lie on disk; some have to come from the tape library."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = 32
RECALL = 0.65  # seconds that the library needs to mount a tape


class Charts(Dataset):
    def __init__(self, count):
        torch.manual_seed(6)
        self.charts = torch.randn(200, 4, 32, 32)
        self.count = count

    def on_tape(self, index):
        return index > 0 and index % (25 * BATCH) == 0

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.on_tape(index):
            time.sleep(RECALL)
        chart = self.charts[index % 200]
        return chart, chart.mean()


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.look = nn.Conv2d(4, 32, 3, padding=1)
        self.merge = nn.Conv2d(32, 72, 3, padding=1, stride=2)
        self.predict = nn.Linear(72, 1)

    def forward(self, charts):
        hidden = torch.relu(self.look(charts))
        hidden = torch.relu(self.merge(hidden))
        return self.predict(hidden.mean(dim=(2, 3))).squeeze(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=140)
    parser.add_argument("--prefetch", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)

    charts = DataLoader(
        Charts(BATCH * args.steps),
        batch_size=BATCH,
        num_workers=2,
        prefetch_factor=args.prefetch,
    )
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    begin = time.perf_counter()
    for chart, rain in charts:
        loss = nn.functional.mse_loss(model(chart), rain)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
