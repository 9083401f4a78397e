import time

import numpy as np
import torch
from hive import Hive, prefetch
from torch import nn


class Tracker(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.gru = nn.GRU(2, dim, 2, batch_first=True)
        self.out = nn.Linear(dim, 2)

    def forward(self, track):
        return track + self.out(self.gru(track)[0])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    hive, rng = Hive(), np.random.default_rng(0)
    model = Tracker()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses, start = [], time.perf_counter()
    for track in prefetch(lambda: hive.batch(rng, 32, 33), 200):
        track = torch.from_numpy(track)
        loss = nn.functional.mse_loss(model(track[:, :-1]), track[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if len(losses) % 100 == 0:
            print(f"step {len(losses)}: {torch.stack(losses[-100:]).mean().item():.6f}")
    print(f"trained {len(losses)} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
