"""Unusual entries in ledgers: an autoencoder, trained by two processes."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH, FIELDS = 160, 1536, 96


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(160)
    model = DistributedDataParallel(
        nn.Sequential(
            nn.Linear(FIELDS, 384),
            nn.GELU(),
            nn.Linear(384, 32),
            nn.GELU(),
            nn.Linear(32, 384),
            nn.GELU(),
            nn.Linear(384, FIELDS),
        )
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    torch.manual_seed(161 + dist.get_rank())
    entries = torch.randn(8, BATCH, FIELDS)
    dist.barrier()
    begin = time.perf_counter()
    for step in range(STEPS):
        batch = entries[step % 8]
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    if dist.get_rank() == 0:
        print(f"loss {loss.item():.3f}")
        print(f"trained {STEPS} steps in {seconds:.3f} s", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
