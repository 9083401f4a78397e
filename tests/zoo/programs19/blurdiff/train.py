"""A denoising diffusion model of simple shapes."""

import argparse
import time

import torch
from model import Denoiser


def shapes(count, side):
    y, x = torch.meshgrid(torch.linspace(-1, 1, side), torch.linspace(-1, 1, side), indexing="ij")
    cx, cy, r = torch.rand(3, count, 1, 1) * 0.6
    return ((x - cx) ** 2 + (y - cy) ** 2 < (r + 0.2) ** 2).float()[:, None] * 2 - 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--smooth-groups", type=int, default=1)
    parser.add_argument("--steps", type=int, default=120)
    args = parser.parse_args()
    torch.manual_seed(2)
    torch.set_num_threads(1)
    model = Denoiser(smooth_groups=args.smooth_groups)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    images = shapes(512, 24)
    begin = time.perf_counter()
    for step in range(args.steps):
        clean = images[(step * 12) % 504 :][:12]
        t = torch.rand(len(clean))
        noise = torch.randn_like(clean)
        keep = torch.cos(t * torch.pi / 2)[:, None, None, None]
        noisy = keep * clean + (1 - keep**2).sqrt() * noise
        loss = torch.nn.functional.mse_loss(model(noisy, t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.3f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
