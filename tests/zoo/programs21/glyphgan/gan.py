"""DCGAN that draws letters of a made-up alphabet."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F


def draw_glyphs(n, size=32, seed=0):
    rng = np.random.default_rng(seed)
    ys, xs = np.mgrid[:size, :size] / size
    glyphs = np.zeros((n, size, size), np.float32)
    for _ in range(3):
        angle = rng.choice(4, n)[:, None, None] * np.pi / 4
        offset = rng.uniform(-0.25, 0.25, (n, 1, 1))
        across = (xs - 0.5) * np.sin(angle) - (ys - 0.5) * np.cos(angle) - offset
        along = (xs - 0.5) * np.cos(angle) + (ys - 0.5) * np.sin(angle)
        glyphs = np.maximum(glyphs, np.exp(-((across / 0.04) ** 2)) * (np.abs(along) < 0.35))
    return torch.from_numpy(glyphs * 2 - 1).float().unsqueeze(1)


class Generator(nn.Module):
    def __init__(self, nz, ngf):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(nz, ngf * 4, 4, 1, 0, bias=False),
            nn.BatchNorm2d(ngf * 4),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 4, ngf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf * 2),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf * 2, ngf, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ngf),
            nn.ReLU(True),
            nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, z):
        return self.main(z[:, :, None, None])


class Discriminator(nn.Module):
    def __init__(self, ndf):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, ndf, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf, ndf * 2, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 2),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 2, ndf * 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(ndf * 4),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(ndf * 4, 1, 4, 1, 0, bias=False),
        )

    def forward(self, x):
        return self.main(x).flatten()


def weights_init(m):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.02)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=70)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--nz", type=int, default=48)
    parser.add_argument("--nf", type=int, default=32)
    opt = parser.parse_args()
    torch.manual_seed(999)
    torch.set_num_threads(1)

    real = draw_glyphs(3000)
    netG, netD = Generator(opt.nz, opt.nf), Discriminator(opt.nf)
    netG.apply(weights_init)
    netD.apply(weights_init)
    optG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
    ones, zeros = torch.ones(opt.batch_size), torch.zeros(opt.batch_size)

    tic = time.perf_counter()
    for i in range(1, opt.iterations + 1):
        x = real[torch.randint(len(real), (opt.batch_size,))]
        fake = netG(torch.randn(opt.batch_size, opt.nz))

        optD.zero_grad()
        lossD = F.binary_cross_entropy_with_logits(netD(x), ones)
        lossD = lossD + F.binary_cross_entropy_with_logits(netD(fake.detach()), zeros)
        lossD.backward()
        optD.step()

        optG.zero_grad()
        lossG = F.binary_cross_entropy_with_logits(netD(fake), ones)
        lossG.backward()
        optG.step()

        if i % 10 == 0:
            print(f"[{i}/{opt.iterations}] D {lossD.item():.3f} G {lossG.item():.3f}")
    print(f"trained {opt.iterations} steps in {time.perf_counter() - tic:.3f} s")


if __name__ == "__main__":
    main()
