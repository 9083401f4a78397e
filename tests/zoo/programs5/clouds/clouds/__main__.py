import argparse
import time

import torch

from clouds.config import SMALL_ATTENTION, Config
from clouds.unet import UNet


def sky(n, size, generator):
    noise = torch.randn(n, 1, size // 4, size // 4, generator=generator)
    return torch.nn.functional.interpolate(noise, size=size, mode="bicubic").clamp(-1, 1)


def train(config):
    images = sky(512, config.size, torch.Generator().manual_seed(0))
    keep = torch.cumprod(1 - torch.linspace(1e-4, 0.05, config.noise_steps), 0)
    model = UNet(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    for step in range(config.steps):
        x = images[torch.randint(len(images), (config.batch,))]
        t = torch.randint(config.noise_steps, (config.batch,))
        a = keep[t][:, None, None, None]
        noise = torch.randn_like(x)
        loss = (model(a.sqrt() * x + (1 - a).sqrt() * noise, t.float()) - noise).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--small-attention", action="store_true")
    args = parser.parse_args()
    config = Config(**(SMALL_ATTENTION if args.small_attention else {}))
    torch.manual_seed(0)
    torch.set_num_threads(1)
    start = time.perf_counter()
    train(config)
    print(f"trained {config.steps} steps in {time.perf_counter() - start:.3f} s")


main()
