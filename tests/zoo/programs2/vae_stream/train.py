"""A variational autoencoder on an endless stream of rings."""

import copy
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

STEPS = 250
SIZE = 28


class Rings(IterableDataset):
    """Yields whole batches."""

    def __init__(self, batch):
        self.batch = batch

    def __iter__(self):
        info = get_worker_info()
        rng = np.random.default_rng(info.id if info else 0)
        axis = np.linspace(-1, 1, SIZE, dtype=np.float32)
        while True:
            cy, cx = rng.uniform(-0.3, 0.3, (2, self.batch, 1)).astype(np.float32)
            radius = rng.uniform(0.2, 0.6, (self.batch, 1, 1)).astype(np.float32)
            square = (axis - cy)[:, :, None] ** 2 + (axis - cx)[:, None, :] ** 2
            ring = np.abs(np.sqrt(square) - radius) < 0.08
            yield torch.from_numpy(ring.reshape(self.batch, -1).astype(np.float32))


class VAE(nn.Module):
    def __init__(self, latent=16, width=512):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(SIZE * SIZE, width), nn.GELU(), nn.Linear(width, 2 * latent)
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, SIZE * SIZE),
        )

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        kl = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean()
        picture = F.binary_cross_entropy_with_logits(self.decoder(z), x, reduction="none")
        return picture.sum(1).mean() + kl


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(Rings(256), batch_size=None, num_workers=1)
    model = VAE()
    averaged = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    started = time.perf_counter()
    for step, pictures in enumerate(loader, 1):
        loss = model(pictures)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 100.0)
        optimizer.step()
        if step % 10 == 0:
            with torch.no_grad():
                torch._foreach_lerp_(list(averaged.parameters()), list(model.parameters()), 0.05)
        if step % 50 == 0:
            print(f"step {step} elbo {-loss.item():.2f}")
        if step == STEPS:
            break
    took = time.perf_counter() - started
    torch.save(averaged.state_dict(), "vae.pt")
    print(f"trained {STEPS} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
