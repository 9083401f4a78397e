import torch
from torch.nn import functional as F

from .nets import Critic, Generator


class Gan:
    def __init__(self, settings):
        self.latent = settings["latent"]
        self.g = Generator(self.latent, settings["channels"])
        self.d = Critic(settings["channels"])
        betas = (0.5, 0.99)
        self.opt_g = torch.optim.Adam(self.g.parameters(), settings["lr"], betas, fused=True)
        self.opt_d = torch.optim.Adam(self.d.parameters(), settings["lr"], betas, fused=True)

    def step_critic(self, real, fake):
        loss = F.softplus(-self.d(real)).mean() + F.softplus(self.d(fake.detach())).mean()
        self.opt_d.zero_grad()
        loss.backward()
        self.opt_d.step()
        return loss.detach()

    def step_generator(self, fake):
        self.d.requires_grad_(False)
        loss = F.softplus(-self.d(fake)).mean()
        self.opt_g.zero_grad()
        loss.backward()
        self.opt_g.step()
        self.d.requires_grad_(True)
        return loss.detach()

    def train_step(self, real):
        fake = self.g(torch.randn(len(real), self.latent))
        return self.step_critic(real, fake), self.step_generator(fake)
