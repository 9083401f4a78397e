import copy

import torch
from torch import nn
from torch.nn import functional as F


class Agent:
    def __init__(self, cfg):
        self.cfg = cfg
        self.online = nn.Sequential(
            nn.Linear(cfg.obs, cfg.width),
            nn.ReLU(),
            nn.Linear(cfg.width, cfg.width),
            nn.ReLU(),
            nn.Linear(cfg.width, cfg.actions),
        )
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=cfg.lr, fused=True)

    @torch.no_grad()
    def act(self, obs):
        return self.online(torch.from_numpy(obs)).argmax(dim=1).numpy()

    def learn(self, obs, action, reward, following):
        with torch.no_grad():
            best = self.target(following).max(dim=1).values
            goal = reward + self.cfg.gamma * best
        value = self.online(obs).gather(1, action[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return (goal - value.detach()).abs().numpy()

    @torch.no_grad()
    def follow(self):
        pairs = (list(self.target.parameters()), list(self.online.parameters()))
        torch._foreach_lerp_(*pairs, self.cfg.tau)
