"""DDPM on outlines of dragonfly wings, 20x20."""

import argparse
import copy
import time

import torch
from torch.nn import functional as F

from denoiser import Denoiser

STEPS_OF_NOISE = 200


def wings(count, generator):
    grid = torch.linspace(-1, 1, 20)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    angle = torch.rand(count, 1, 1, generator=generator) * 3.14
    length = 0.5 + 0.4 * torch.rand(count, 1, 1, generator=generator)
    u = x * angle.cos() + y * angle.sin()
    v = -x * angle.sin() + y * angle.cos()
    inside = (u / length) ** 2 + (v / 0.2) ** 2
    return (torch.exp(-4 * (inside - 1).abs()) * 2 - 1)[:, None]


class Diffusion:
    def __init__(self):
        betas = torch.linspace(1e-4, 0.04, STEPS_OF_NOISE)
        self.kept = torch.cumprod(1 - betas, 0)

    def corrupt(self, x, t, noise):
        a = self.kept[t].view(-1, 1, 1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * noise


class EMA:
    def __init__(self, model, decay=0.99):
        self.model, self.decay = copy.deepcopy(model).requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model):
        torch._foreach_lerp_(
            list(self.model.parameters()), list(model.parameters()), 1 - self.decay
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--attn-at", choices=["full", "bottom"], default="full")
    parser.add_argument("--iterations", type=int, default=150)
    parser.add_argument("--batch-size", type=int, default=5)
    parser.add_argument("--width", type=int, default=24)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(3)

    images = wings(600, torch.Generator().manual_seed(3))
    diffusion = Diffusion()
    model = Denoiser(args.width, args.attn_at)
    ema = EMA(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, 20)

    average = None
    start = time.perf_counter()
    for i in range(args.iterations):
        x = images[torch.randint(0, len(images), (args.batch_size,))]
        t = torch.randint(0, STEPS_OF_NOISE, (len(x),))
        noise = torch.randn_like(x)
        predicted = model(diffusion.corrupt(x, t, noise), t)
        loss = F.mse_loss(predicted, noise)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        warmup.step()
        ema.update(model)
        value = loss.item()
        average = value if average is None else 0.97 * average + 0.03 * value
        if (i + 1) % 25 == 0:
            print(f"iter {i + 1:4d} | loss {average:.4f}")
    seconds = time.perf_counter() - start
    torch.save({"model": model.state_dict(), "ema": ema.model.state_dict()}, "wings.pt")
    print(f"trained {args.iterations} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
