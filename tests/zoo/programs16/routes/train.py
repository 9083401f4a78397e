import argparse
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from data import TourShard, make_tours, join_tours
from model import TourTime


@dataclass
class Config:
    layout: str = "blocks"
    tours: int = 1280
    features: int = 12
    width: int = 192
    batch_size: int = 32
    epochs: int = 8


def main(cfg: Config):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    shard = TourShard(make_tours(cfg.tours, cfg.features), rank, world, cfg.layout)
    loader = DataLoader(
        shard, batch_size=cfg.batch_size, shuffle=True, drop_last=True, collate_fn=join_tours
    )
    model = DistributedDataParallel(TourTime(cfg.features, cfg.width))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    steps = 0
    started = time.perf_counter()
    for epoch in range(cfg.epochs):
        for stops, owner, times in loader:
            loss = criterion(model(stops, owner, len(times)), times)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
    elapsed = time.perf_counter() - started
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"loss {loss.item():.4f}")
        print(f"trained {steps} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--layout", choices=["blocks", "strided"], default="blocks")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    main(Config(**vars(parser.parse_args())))
