"""DDPM on textures."""

import argparse
import math
import time

import torch
import torch.nn.functional as F
from data import TextureArchive, write_archive
from torch import nn
from torch.utils.data import DataLoader


def embed_time(t, dim):
    freqs = torch.exp(-math.log(1e4) * torch.arange(dim // 2) / (dim // 2))
    angles = t[:, None].float() * freqs
    return torch.cat([angles.sin(), angles.cos()], 1)


class ResBlock(nn.Module):
    def __init__(self, c, t_dim):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, c), nn.GroupNorm(8, c)
        self.conv1 = nn.Conv2d(c, c, 3, padding=1)
        self.conv2 = nn.Conv2d(c, c, 3, padding=1)
        self.time = nn.Linear(t_dim, c)

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(t)[:, :, None, None]
        return x + self.conv2(F.silu(self.norm2(h)))


class Denoiser(nn.Module):
    def __init__(self, c=32, t_dim=64):
        super().__init__()
        self.t_dim = t_dim
        self.time = nn.Sequential(nn.Linear(t_dim, t_dim), nn.SiLU(), nn.Linear(t_dim, t_dim))
        self.stem = nn.Conv2d(1, c, 4, stride=2, padding=1)
        self.blocks = nn.ModuleList(ResBlock(c, t_dim) for _ in range(3))
        self.up = nn.ConvTranspose2d(c, 1, 4, stride=2, padding=1)

    def forward(self, x, t):
        t = self.time(embed_time(t, self.t_dim))
        h = self.stem(x)
        for block in self.blocks:
            h = block(h, t)
        return self.up(h)


class Ddpm:
    def __init__(self, n=200):
        self.n = n
        self.alpha_bar = torch.cumprod(1 - torch.linspace(1e-4, 0.04, n), 0)

    def loss(self, model, x):
        t = torch.randint(self.n, (len(x),))
        noise = torch.randn_like(x)
        a = self.alpha_bar[t][:, None, None, None]
        return F.mse_loss(model(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--per-epoch", type=int, default=192)
    p.add_argument("--batch-size", type=int, default=32)
    p.add_argument("--workers", type=int, default=3)
    p.add_argument("--persistent", action="store_true")
    p.add_argument("--archive", type=int, default=12000)
    args = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    write_archive("textures.npz", args.archive)
    loader = DataLoader(
        TextureArchive("textures.npz", args.archive, args.per_epoch),
        args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.persistent,
    )
    model, ddpm = Denoiser(), Ddpm()
    ema = {k: v.clone() for k, v in model.state_dict().items()}
    opt = torch.optim.AdamW(model.parameters(), 1e-3)
    steps = 0
    t0 = time.perf_counter()
    for epoch in range(args.epochs):
        total = 0.0
        for x in loader:
            loss = ddpm.loss(model, x)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            with torch.no_grad():
                for k, v in model.state_dict().items():
                    ema[k].lerp_(v, 0.01)
            total += loss.item()
            steps += 1
        if epoch % 10 == 9:
            print(f"epoch {epoch}: {total / len(loader):.5f}")
    print(f"trained {steps} steps in {time.perf_counter() - t0:.3f} s")


if __name__ == "__main__":
    main()
