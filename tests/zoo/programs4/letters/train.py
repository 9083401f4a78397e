"""Convolutional VAE on letters; accelerate, a validation at the end of each epoch."""

import argparse
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class LetterVAE(nn.Module):
    def __init__(self, c=24, latent=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, c, 4, 2, 1),
            nn.SiLU(),
            nn.Conv2d(c, 2 * c, 4, 2, 1),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(2 * c * 49, 2 * latent),
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, 2 * c * 49),
            nn.Unflatten(1, (2 * c, 7, 7)),
            nn.SiLU(),
            nn.ConvTranspose2d(2 * c, c, 4, 2, 1),
            nn.SiLU(),
            nn.ConvTranspose2d(c, 1, 4, 2, 1),
        )

    def forward(self, x):
        mean, log_var = self.encoder(x).chunk(2, 1)
        z = mean + (0.5 * log_var).exp() * torch.randn_like(mean)
        return self.decoder(z), mean, log_var


def vae_loss(model, x):
    logits, mean, log_var = model(x)
    nll = nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    kl = 0.5 * (mean**2 + log_var.exp() - 1 - log_var).sum()
    return (nll + kl) / len(x)


def letters(n, seed):
    g = torch.Generator().manual_seed(seed)
    coarse = (torch.rand(n, 1, 7, 7, generator=g) < 0.3).float()
    return nn.functional.interpolate(coarse, size=28, mode="bilinear").clamp(0, 1)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--train", type=int, default=3840)
    args = p.parse_args()
    set_seed(2)
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    train = DataLoader(TensorDataset(letters(args.train, 0)), 64, shuffle=True)
    test = DataLoader(TensorDataset(letters(256, 1)), 64)
    model = LetterVAE()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        model.train()
        for (x,) in train:
            loss = vae_loss(model, x)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
        model.eval()
        with torch.no_grad():
            held_out = sum(vae_loss(model, x).item() for (x,) in test) / len(test)
        accelerator.print(f"epoch {epoch}: loss {loss.item():.3f} held out {held_out:.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
