"""A generator of pot shapes and its critic."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def pots(count):
    gen = torch.Generator().manual_seed(5)
    height = torch.linspace(0, 1, 32).view(1, 32, 1)
    across = torch.linspace(-1, 1, 32).view(1, 1, 32)
    belly = torch.rand(count, 1, 1, generator=gen) * 0.5 + 0.3
    outline = belly * torch.sin(3.1 * height).clamp(min=0.1)
    return TensorDataset((across.abs() < outline).float().unsqueeze(1) * 2 - 1)


class Generator(nn.Module):
    def __init__(self, latent=32, width=32):
        super().__init__()
        self.start = nn.Linear(latent, 2 * width * 8 * 8)
        self.up1 = nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1)
        self.up2 = nn.ConvTranspose2d(width, 16, 4, stride=2, padding=1)
        self.last = nn.Conv2d(16, 1, 3, padding=1)

    def forward(self, z):
        h = torch.relu(self.start(z)).view(len(z), -1, 8, 8)
        h = torch.relu(self.up1(h))
        h = torch.relu(self.up2(h))
        return torch.tanh(self.last(h))


class Critic(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(width, 2 * width, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Flatten(),
        )
        self.score = nn.Linear(2 * width * 8 * 8, 1)

    def forward(self, x):
        return self.score(self.features(x)).squeeze(-1)


class Gan:
    def __init__(self, latent=32):
        self.latent = latent
        self.generator = Generator(latent)
        self.critic = Critic()
        self.g_opt = torch.optim.Adam(self.generator.parameters(), 2e-4, betas=(0.5, 0.999))
        self.c_opt = torch.optim.Adam(self.critic.parameters(), 2e-4, betas=(0.5, 0.999))

    def critic_step(self, real):
        fake = self.generator(torch.randn(len(real), self.latent)).detach()
        loss = torch.relu(1 - self.critic(real)).mean() + torch.relu(1 + self.critic(fake)).mean()
        self.c_opt.zero_grad()
        loss.backward()
        self.c_opt.step()
        return loss.detach()

    def generator_step(self, count):
        fake = self.generator(torch.randn(count, self.latent))
        loss = -self.critic(fake).mean()
        self.g_opt.zero_grad()
        loss.backward()
        self.g_opt.step()
        return loss.detach()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(5)
    loader = DataLoader(pots(1120), batch_size=16, shuffle=True, drop_last=True)
    gan = Gan()
    steps = 0
    start = time.perf_counter()
    for epoch in range(2):
        for (real,) in loader:
            c_loss = gan.critic_step(real)
            g_loss = gan.generator_step(len(real))
            steps += 1
        print(f"epoch {epoch}: critic {c_loss:.3f} generator {g_loss:.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
