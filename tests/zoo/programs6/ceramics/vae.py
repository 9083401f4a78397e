import torch
from torch import nn


class GlazeVAE(nn.Module):
    """A variational autoencoder of glaze recipes; the prior's weight rises over the epochs."""

    def __init__(self, oxides=120, hidden=512, latent=16, ramp=10):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(oxides, hidden), nn.SiLU())
        self.mean = nn.Linear(hidden, latent)
        self.log_var = nn.Linear(hidden, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU()
        )
        self.out = nn.Linear(hidden, oxides)
        self.ramp = ramp
        self.start()

    def start(self):
        self.epoch = 0

    def next_epoch(self):
        self.epoch += 1

    def weight(self):
        return min(1.0, self.epoch / self.ramp)

    def forward(self, x):
        h = self.encoder(x)
        mean, log_var = self.mean(h), self.log_var(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_var)
        rebuilt = self.out(self.decoder(z))
        kl = -0.5 * (1 + log_var - mean.pow(2) - log_var.exp()).sum(1).mean()
        return nn.functional.mse_loss(rebuilt, x) + 1e-3 * self.weight() * kl


class BufferedVAE(GlazeVAE):
    def start(self):
        self.register_buffer("epoch", torch.zeros(()))

    def next_epoch(self):
        self.epoch.add_(1)

    def weight(self):
        return (self.epoch / self.ramp).clamp(max=1.0)
