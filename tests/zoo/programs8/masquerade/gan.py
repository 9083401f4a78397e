"""DCGAN on 32 by 32 masks."""

import time

import torch
import torch.nn as nn
import torch.nn.functional as F

LATENT = 64


def up(a, b):
    return [nn.ConvTranspose2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU(True)]


def down(a, b):
    return [nn.Conv2d(a, b, 4, 2, 1, bias=False), nn.BatchNorm2d(b), nn.LeakyReLU(0.2, True)]


def generator():
    return nn.Sequential(
        nn.ConvTranspose2d(LATENT, 96, 4, 1, 0, bias=False),
        nn.BatchNorm2d(96),
        nn.ReLU(True),
        *up(96, 48),
        *up(48, 24),
        nn.ConvTranspose2d(24, 1, 4, 2, 1),
        nn.Tanh(),
    )


def discriminator():
    return nn.Sequential(
        nn.Conv2d(1, 24, 4, 2, 1),
        nn.LeakyReLU(0.2, True),
        *down(24, 48),
        *down(48, 96),
        nn.Conv2d(96, 1, 4, 1, 0),
        nn.Flatten(0),
    )


def main(batch_size=32, steps=90):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    masks = F.interpolate(torch.rand(1024, 1, 5, 5), size=32, mode="bicubic").clamp(0, 1) * 2 - 1
    g, d = generator(), discriminator()
    opt_g = torch.optim.Adam(g.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(d.parameters(), lr=2e-4, betas=(0.5, 0.999))
    real_label, fake_label = torch.ones(batch_size), torch.zeros(batch_size)
    bce = F.binary_cross_entropy_with_logits
    start = time.perf_counter()
    for step in range(steps):
        real = masks[torch.randint(0, len(masks), (batch_size,))]
        fake = g(torch.randn(batch_size, LATENT, 1, 1))
        loss_d = bce(d(real), real_label) + bce(d(fake.detach()), fake_label)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = bce(d(fake), real_label)
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        if step % 30 == 29:
            print(f"[{step + 1}/{steps}] D {loss_d.item():.3f} G {loss_g.item():.3f}")
    torch.save({"g": g.state_dict(), "d": d.state_dict()}, "masquerade.pt")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
