"""Two processes by torch.multiprocessing; the first one also draws pictures of the result."""

import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from preview import render_preview
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def decoder(width=16):
    return nn.Sequential(
        nn.Linear(32, width * 7 * 7),
        nn.ReLU(),
        nn.Unflatten(1, (width, 7, 7)),
        nn.ConvTranspose2d(width, width, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(width, width, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, 1, 3, padding=1),
        nn.Tanh(),
    )


def work(rank, world, port, preview_every):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    codes = torch.randn(120 * 2 * 64, 32)
    pictures = torch.tanh(codes @ torch.randn(32, 784) / 4).view(-1, 1, 28, 28)
    data = TensorDataset(codes, pictures)
    sampler = DistributedSampler(data, world, rank, seed=0)
    loader = DataLoader(data, batch_size=64, sampler=sampler)
    model = DDP(decoder())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step, (code, picture) in enumerate(loader):
        out = model(code)
        loss = nn.functional.mse_loss(out, picture)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % preview_every == 0:
            render_preview(out.detach(), f"preview-{step % 10}.pgm")
    if rank == 0:
        print(f"trained {len(loader)} steps in {time.perf_counter() - start:.3f} s")
    dist.barrier()
    dist.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    every = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    mp.spawn(work, args=(2, free_port(), every), nprocs=2)
