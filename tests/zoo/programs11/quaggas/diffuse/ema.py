import copy

import torch


class Ema:
    def __init__(self, model, decay=0.995):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        mine, theirs = list(self.model.parameters()), list(model.parameters())
        torch._foreach_lerp_(mine, theirs, 1.0 - self.decay)
