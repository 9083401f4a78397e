"""Learn to draw glazes: denoising diffusion on 24 by 24 tiles."""

import argparse
import copy
import time

import torch
import torch.nn.functional as F

from model import Denoiser


class Diffusion:
    def __init__(self, steps=400):
        beta = torch.linspace(1e-4, 0.02, steps)
        self.steps, self.alpha_bar = steps, (1 - beta).cumprod(0)

    def noised(self, x, t, noise):
        a = self.alpha_bar[t][:, None, None, None]
        return a.sqrt() * x + (1 - a).sqrt() * noise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--attention-at", type=int, nargs="+", default=[24, 12])
    parser.add_argument("--steps", type=int, default=70)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    tiles = F.interpolate(torch.rand(512, 3, 6, 6), size=24, mode="bilinear") * 2 - 1
    diffusion = Diffusion()
    model = Denoiser(attention_at=tuple(args.attention_at))
    ema = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-4)
    start = time.perf_counter()
    for step in range(args.steps):
        x = tiles[torch.randint(0, len(tiles), (8,))]
        t = torch.randint(0, diffusion.steps, (len(x),))
        noise = torch.randn_like(x)
        loss = F.mse_loss(model(diffusion.noised(x, t, noise), t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(ema.parameters()), list(model.parameters()), 0.005)
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
