"""Carnival masks made up by a small GAN."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

NOISE = 32


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(
        TensorDataset(torch.rand(1280, 1, 24, 24)), batch_size=16, shuffle=True, drop_last=True
    )
    maker = nn.Sequential(
        nn.Linear(NOISE, 64 * 36), nn.ReLU(), nn.Unflatten(1, (64, 6, 6)),
        nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU(),
        nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Sigmoid(),
    )  # fmt: skip
    judge = nn.Sequential(
        nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(32, 64, 4, 2, 1), nn.LeakyReLU(0.2),
        nn.Flatten(), nn.Linear(64 * 36, 1),
    )  # fmt: skip
    maker_opt = torch.optim.Adam(maker.parameters(), lr=2e-4, betas=(0.5, 0.999))
    judge_opt = torch.optim.Adam(judge.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
    steps = 0
    start = time.perf_counter()
    for epoch in range(2):
        for (real,) in loader:
            fake = maker(torch.randn(len(real), NOISE))
            judge_loss = bce(judge(real), ones) + bce(judge(fake.detach()), zeros)
            judge_opt.zero_grad()
            judge_loss.backward()
            judge_opt.step()
            maker_loss = bce(judge(fake), ones)
            maker_opt.zero_grad()
            maker_loss.backward()
            maker_opt.step()
            steps += 1
        print(f"epoch {epoch}: judge {judge_loss.item():.3f} maker {maker_loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
