"""A GAN of floor tiles."""

import argparse
import time

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, code=32, width=32):
        super().__init__()
        self.enter = nn.Linear(code, 4 * width * 16)
        self.body = nn.Sequential(
            nn.Unflatten(1, (4 * width, 4, 4)),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(4 * width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(2 * width, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(width, 3, 3, padding=1),
            nn.Tanh(),
        )

    def forward(self, code):
        return self.body(self.enter(code))


class Critic(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
            nn.Linear(2 * width * 64, 1),
        )

    def forward(self, tiles):
        return self.body(tiles)[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=16)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(50)
    generator, critic = Generator(), Critic()
    make = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.99))
    judge = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.99))
    y, x = torch.meshgrid(torch.linspace(0, 12, 32), torch.linspace(0, 12, 32), indexing="ij")
    tiles = torch.sin(x * torch.rand(256, 3, 1, 1) * 2) * torch.cos(y)
    softplus = nn.functional.softplus
    begin = time.perf_counter()
    for step in range(args.steps):
        real = tiles[step * args.batch % 256 :][: args.batch]
        fake = generator(torch.randn(args.batch, 32))
        loss_judge = softplus(-critic(real)).mean() + softplus(critic(fake.detach())).mean()
        judge.zero_grad()
        loss_judge.backward()
        judge.step()
        loss_make = softplus(-critic(fake)).mean()
        make.zero_grad()
        loss_make.backward()
        make.step()
    seconds = time.perf_counter() - begin
    print(f"critic {loss_judge.item():.3f} generator {loss_make.item():.3f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
