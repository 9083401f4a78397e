import argparse
import time

import torch
import torch.distributed as dist
from torch import nn

from parallel import average_gradients, average_gradients_flat


class Residual(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)
        self.norm = nn.GroupNorm(4, channels)
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        return x + self.mix(torch.relu(self.norm(self.conv(x))))


class PhasePicker(nn.Module):
    def __init__(self, channels=24, depth=20):
        super().__init__()
        self.stem = nn.Conv1d(3, channels, 7, padding=3)
        self.blocks = nn.Sequential(*[Residual(channels, 2 ** (i % 5)) for i in range(depth)])
        self.out = nn.Conv1d(channels, 3, 1)

    def forward(self, x):
        return self.out(self.blocks(self.stem(x)))


def waveforms(rank, steps, batch=16, samples=128):
    generator = torch.Generator().manual_seed(100 + rank)
    for _ in range(steps):
        wave = torch.randn(batch, 3, samples, generator=generator)
        phase = torch.randint(3, (batch, samples), generator=generator)
        yield wave, phase


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--flat", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group(backend="gloo")
    rank = dist.get_rank()
    model = PhasePicker()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    average = average_gradients_flat if args.flat else average_gradients
    dist.barrier()
    start = time.perf_counter()
    for step, (wave, phase) in enumerate(waveforms(rank, args.steps)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(wave), phase)
        loss.backward()
        average(model)
        optimizer.step()
        if rank == 0 and step % 30 == 0:
            print(f"{step} {loss.item():.4f}", flush=True)
    seconds = time.perf_counter() - start
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        print(f"trained {args.steps} steps in {seconds:.3f} s", flush=True)


if __name__ == "__main__":
    main()
