import math

import torch


def alpha_bar(t):
    return math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2


class Schedule:
    def __init__(self, steps):
        betas = [
            min(1 - alpha_bar((i + 1) / steps) / alpha_bar(i / steps), 0.999) for i in range(steps)
        ]
        kept = torch.cumprod(1.0 - torch.tensor(betas), dim=0)
        self.steps = steps
        self.signal, self.noise = kept.sqrt(), (1.0 - kept).sqrt()

    def corrupt(self, x, noise, t):
        return self.signal[t].view(-1, 1, 1, 1) * x + self.noise[t].view(-1, 1, 1, 1) * noise
