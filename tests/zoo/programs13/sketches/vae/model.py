import torch
from torch import nn
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, width=18, latent=16):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.Flatten(),
        )
        self.mean = nn.Linear(2 * width * 64, latent)
        self.log_variance = nn.Linear(2 * width * 64, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 2 * width * 64),
            nn.Unflatten(1, (2 * width, 8, 8)),
            nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1),
            nn.SiLU(),
            nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        )

    def forward(self, x):
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.decoder(z), mean, log_variance, h


def losses(x, logits, mean, log_variance):
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
    kl = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum() / len(x)
    return reconstruction, kl
