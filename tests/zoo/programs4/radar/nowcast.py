import argparse
import logging
import time

import torch
from shards import RadarStream, write_shards
from torch import nn
from torch.utils.data import DataLoader

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
logger = logging.getLogger(__name__)


class Nowcaster(nn.Module):
    def __init__(self, frames=5, width=12):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(frames, width, 5, padding=2),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, 3, padding=1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, 3, padding=2, dilation=2),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, 1, 3, padding=1),
        )

    def forward(self, x):
        return x[:, -1:] + self.net(x)


def weighted_mae(prediction, target):
    """Heavy rain counts more."""
    return ((1 + target) * (prediction - target).abs()).mean()


def run(args):
    torch.manual_seed(2)
    torch.set_num_threads(1)
    paths = write_shards(args.shards, args.per_shard)
    stream = RadarStream(paths, args.batch_size, args.passes)
    loader = DataLoader(stream, batch_size=None, num_workers=2, prefetch_factor=args.prefetch)
    model = Nowcaster()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-4)
    step, average = 0, None
    start = time.perf_counter()
    for past, future in loader:
        loss = weighted_mae(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
        step += 1
        if step % 60 == 0:
            logger.info("step %d loss %.5f", step, average)
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--per-shard", type=int, default=768)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--prefetch", type=int, default=1)
    run(parser.parse_args())
