"""Delay of ferries; two processes, a sampler that deals the rows out."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler


class Delay(nn.Module):
    def __init__(self, channels=16, width=96):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(channels, width, 5, padding=2),
            nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2),
            nn.ReLU(),
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.body(x).mean(-1))[:, 0]


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(8)
    crossings = torch.randn(2560, 16, 160)
    delays = crossings[:, 0].mean(-1)
    model = DDP(Delay())
    opt = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    sampler = DistributedSampler(range(len(crossings)), shuffle=True, seed=1)
    steps = 0
    began = time.perf_counter()
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for rows in torch.tensor(list(sampler)).split(40):
            loss = nn.functional.mse_loss(model(crossings[rows]), delays[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {loss.item():.5f}", flush=True)
    seconds = time.perf_counter() - began
    first = dist.get_rank() == 0
    dist.destroy_process_group()
    if first:
        print(f"trained {steps} steps in {seconds:.3f} s", flush=True)


if __name__ == "__main__":
    main()
