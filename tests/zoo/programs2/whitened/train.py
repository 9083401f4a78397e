"""Emulate a spectrograph: parameters of a star to its spectrum, with an average of the weights."""

import argparse
import copy
import time

import torch
from losses import MahalanobisLoss, PrecisionLoss
from torch import nn

CHANNELS = 512


def instrument_noise(channels):
    channel = torch.arange(channels)
    distance = (channel[:, None] - channel[None, :]).abs()
    return 0.05 * torch.exp(-distance / 12.0) + 0.01 * torch.eye(channels)


def simulate(count):
    stars = torch.rand(count, 12)
    wave = torch.linspace(0, 6, CHANNELS)
    spectra = torch.zeros(count, CHANNELS)
    for k in range(6):
        spectra += stars[:, 2 * k, None] * torch.sin((k + 1) * wave + 3 * stars[:, 2 * k + 1, None])
    return stars, spectra


class Average:
    """Exponential moving average of the weights."""

    def __init__(self, model, decay=0.99):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        mine, theirs = list(self.model.parameters()), list(model.parameters())
        torch._foreach_lerp_(mine, theirs, 1 - self.decay)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--invert-first", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    stars, spectra = simulate(40 * args.batch)
    covariance = instrument_noise(CHANNELS)
    if args.invert_first:
        criterion = PrecisionLoss(torch.linalg.pinv(covariance, hermitian=True))
    else:
        criterion = MahalanobisLoss(covariance)
    model = nn.Sequential(
        nn.Linear(12, 512), nn.SiLU(), nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, CHANNELS)
    )
    average = Average(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

    step = 0
    begin = time.perf_counter()
    for epoch in range(args.epochs):
        for index in torch.randperm(len(stars)).split(args.batch):
            loss = criterion(model(stars[index]), spectra[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update(model)
            step += 1
        scheduler.step()
        with torch.no_grad():
            held = criterion(average.model(stars[:256]), spectra[:256])
        print(f"epoch {epoch}: loss {loss.item():.3f}, averaged {held.item():.3f}")
    print(f"trained {step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
