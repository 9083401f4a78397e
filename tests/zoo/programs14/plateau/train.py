"""Next-event regression on a stream that is stored in shards."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SHARD_BATCHES = 16
BATCH = 48


class ShardStream(IterableDataset):
    """Each worker downloads a shard, then hands out its batches."""

    def __init__(self, batches, features):
        self.batches = batches
        self.features = features

    def download(self, shard):
        time.sleep(0.36)
        rng = np.random.default_rng(shard)
        x = rng.standard_normal((SHARD_BATCHES, BATCH, self.features), dtype=np.float32)
        y = x[..., :4].sum(-1, keepdims=True)
        return torch.from_numpy(x), torch.from_numpy(y)

    def __iter__(self):
        info = get_worker_info()
        shards = self.batches // SHARD_BATCHES
        for shard in range(info.id, shards, info.num_workers):
            x, y = self.download(shard)
            yield from zip(x, y)


class Residual(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--batches", type=int, default=192)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    features = 448
    stream = ShardStream(args.batches, features)
    loader = DataLoader(stream, batch_size=None, num_workers=2, prefetch_factor=args.prefetch)
    model = nn.Sequential(*[Residual(features) for _ in range(4)], nn.Linear(features, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.batches)

    start = time.perf_counter()
    batches = iter(loader)
    step = 0
    while True:
        try:
            x, y = next(batches)
        except StopIteration:
            break
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.4f}")
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
