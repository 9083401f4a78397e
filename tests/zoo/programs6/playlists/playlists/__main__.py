import argparse
import time

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from .model import TwoTower
from .negatives import MaskSampler, SetSampler

USERS, TRACKS = 1500, 2500


def plays(seed=31, count=512 * 200):
    rng = np.random.default_rng(seed)
    users = rng.integers(0, USERS, count)
    tracks = (TRACKS * rng.random(count) ** 2).astype(np.int64)
    played = np.zeros((USERS, TRACKS), dtype=bool)
    played[users, tracks] = True
    return torch.from_numpy(users), torch.from_numpy(tracks), played


def main():
    parser = argparse.ArgumentParser(prog="playlists")
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--negatives", type=int, default=8)
    parser.add_argument("--sampler", choices=["sets", "mask"], default="sets")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(3)
    np.random.seed(3)

    users, tracks, played = plays()
    data = TensorDataset(users, tracks)
    order = BatchSampler(RandomSampler(data), options.batch_size, drop_last=True)
    loader = DataLoader(data, sampler=order, batch_size=None)
    sampler = {"sets": SetSampler, "mask": MaskSampler}[options.sampler](played, TRACKS)
    model = TwoTower(USERS, TRACKS)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)

    losses = []
    start = time.perf_counter()
    for user, track in loader:
        negative = sampler.sample(user, options.negatives)
        optimizer.zero_grad()
        loss = model(user, track, negative)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    seconds = time.perf_counter() - start
    print(f"first {losses[0]:.4f} last {losses[-1]:.4f}")
    print(f"trained {len(losses)} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
