"""LAMB, after You et al. (2019)."""

import torch


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.data
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["exp_avg"] = torch.zeros_like(p.data)
                    state["exp_avg_sq"] = torch.zeros_like(p.data)
                exp_avg, exp_avg_sq = state["exp_avg"], state["exp_avg_sq"]
                state["step"] += 1
                exp_avg.mul_(beta1).add_(grad, alpha=1 - beta1)
                exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
                m = exp_avg / (1 - beta1 ** state["step"])
                v = exp_avg_sq / (1 - beta2 ** state["step"])
                update = m / (v.sqrt() + group["eps"])
                update = update + group["weight_decay"] * p.data
                weight_norm = p.data.pow(2).sum().sqrt().clamp(0, 10)
                update_norm = update.pow(2).sum().sqrt()
                if weight_norm == 0 or update_norm == 0:
                    trust = 1.0
                else:
                    trust = weight_norm / update_norm
                p.data.copy_(p.data - group["lr"] * trust * update)


def build(name, params):
    if name == "lamb":
        return Lamb(params, lr=2e-3)
    return torch.optim.AdamW(params, lr=2e-3, fused=True)
