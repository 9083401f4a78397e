"""Recorded shifts of a taxi dispatcher: what was seen, done, and earned."""

from dataclasses import dataclass

import torch


@dataclass
class Trajectories:
    observations: torch.Tensor  # (batch, time, features)
    actions: torch.Tensor  # (batch, time)
    returns: torch.Tensor  # (batch, time)


class ReplayBuffer:
    def __init__(self, shifts, horizon, features, actions, seed=6):
        generator = torch.Generator().manual_seed(seed)
        self.observations = torch.randn(shifts, horizon, features, generator=generator)
        self.actions = torch.randint(actions, (shifts, horizon), generator=generator)
        rewards = torch.randn(shifts, horizon, generator=generator)
        self.returns = rewards.flip(1).cumsum(1).flip(1) / horizon
        self.generator = generator

    def sample(self, count):
        index = torch.randint(len(self.actions), (count,), generator=self.generator)
        return Trajectories(self.observations[index], self.actions[index], self.returns[index])
