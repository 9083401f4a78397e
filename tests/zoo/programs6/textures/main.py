import argparse
import time

import torch
from torch.nn.functional import mse_loss

from vq import TextureVAE


def batches(count, size, seed=13):
    generator = torch.Generator().manual_seed(seed)
    pool = torch.rand(512, 3, 32, 32, generator=generator)
    for _ in range(count):
        yield pool[torch.randint(512, (size,), generator=generator)]


def train(model, data, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for i, x in enumerate(data, 1):
        y, commitment = model(x)
        loss = mse_loss(y, x) + commitment
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 30 == 0:
            print(f"{i:4d} {loss.item():.4f}")
    return i


def cli():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--batch", type=int, default=24)
    p.add_argument("--codes", type=int, default=128)
    p.add_argument("--distance", default="broadcast")
    return p.parse_args()


if __name__ == "__main__":
    a = cli()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    vae = TextureVAE(codes=a.codes, distance=a.distance)
    t0 = time.perf_counter()
    n = train(vae, batches(a.steps, a.batch), 2e-3)
    print(f"trained {n} steps in {time.perf_counter() - t0:.3f} s")
