import torch


class Landers:
    """Many landers at once: height, speed and fuel; actions are no, weak or strong thrust."""

    def __init__(self, n, seed=0):
        self.g = torch.Generator().manual_seed(seed)
        self.n = n
        self.state = self.fresh(n)

    def fresh(self, n):
        return torch.rand(n, 6, generator=self.g) * 2 - 1

    def step(self, action):
        s = self.state
        thrust = action.float() * 0.06
        s[:, 1] += thrust - 0.05
        s[:, 0] += 0.1 * s[:, 1]
        s[:, 2:] += 0.02 * torch.randn(self.n, 4, generator=self.g)
        reward = -s[:, 0].abs() - 0.3 * s[:, 1].abs() - 0.05 * thrust
        done = (s[:, 0].abs() > 2) | (torch.rand(self.n, generator=self.g) < 0.01)
        if done.any():
            s[done] = self.fresh(int(done.sum()))
        return s.clone(), reward, done
