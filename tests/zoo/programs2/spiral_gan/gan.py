"""A GAN on points of a spiral."""

import sys
import time

import numpy as np
import torch
from torch import nn

BATCH = 256
LATENT = 16
WIDTH = 320
STEPS = 200


def spiral(count, rng):
    turn = 4 * np.pi * np.sqrt(rng.random(count))
    points = np.stack([turn * np.cos(turn), turn * np.sin(turn)], axis=1) / 12
    return points + 0.01 * rng.standard_normal((count, 2))


def mlp(inputs, outputs):
    return nn.Sequential(
        nn.Linear(inputs, WIDTH),
        nn.LeakyReLU(0.2),
        nn.Linear(WIDTH, WIDTH),
        nn.LeakyReLU(0.2),
        nn.Linear(WIDTH, WIDTH),
        nn.LeakyReLU(0.2),
        nn.Linear(WIDTH, outputs),
    )


def main():
    single = "--single" in sys.argv[1:]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    generator, discriminator = mlp(LATENT, 2), mlp(2, 1)
    data = torch.from_numpy(spiral(20_000, rng))
    if single:
        data = data.float()
    else:
        generator.double()
        discriminator.double()
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.9))
    d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=4e-4, betas=(0.5, 0.9))
    criterion = nn.BCEWithLogitsLoss()
    ones = torch.ones(BATCH, 1, dtype=data.dtype)
    zeros = torch.zeros(BATCH, 1, dtype=data.dtype)

    start = time.perf_counter()
    for step in range(STEPS):
        real = data[torch.randint(0, len(data), (BATCH,))]
        fake = generator(torch.randn(BATCH, LATENT, dtype=data.dtype))

        d_loss = criterion(discriminator(real), ones)
        d_loss = d_loss + criterion(discriminator(fake.detach()), zeros)
        d_optimizer.zero_grad()
        d_loss.backward()
        d_optimizer.step()

        g_loss = criterion(discriminator(fake), ones)
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        if step % 50 == 0:
            print(f"step {step} d {d_loss.item():.4f} g {g_loss.item():.4f}")
    print(f"trained {STEPS} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
