"""Adam with decoupled weight decay, after the paper."""

import torch


class PaperAdam:
    def __init__(self, parameters, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, decay=0.01):
        self.parameters = list(parameters)
        self.lr, self.betas, self.eps, self.decay = lr, betas, eps, decay
        self.first = [torch.zeros_like(p) for p in self.parameters]
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.count = 0

    def zero_grad(self):
        for p in self.parameters:
            p.grad = None

    @torch.no_grad()
    def step(self):
        self.count += 1
        beta1, beta2 = self.betas
        for i, p in enumerate(self.parameters):
            grad = p.grad
            self.first[i] = beta1 * self.first[i] + (1 - beta1) * grad
            self.second[i] = beta2 * self.second[i] + (1 - beta2) * grad * grad
            mean = self.first[i] / (1 - beta1**self.count)
            spread = self.second[i] / (1 - beta2**self.count)
            change = mean / (torch.sqrt(spread) + self.eps)
            p.copy_(p - self.lr * (change + self.decay * p))
