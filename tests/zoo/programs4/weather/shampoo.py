"""Shampoo (Gupta et al. 2018): a preconditioner for each side of each matrix."""

import torch


def inverse_root(matrix, power, eps=1e-4):
    values, vectors = torch.linalg.eigh(matrix + eps * torch.eye(len(matrix)))
    return (vectors * values.clamp_min(eps).pow(-1.0 / power)) @ vectors.T


class Shampoo(torch.optim.Optimizer):
    def __init__(self, params, lr=0.05, momentum=0.9, update_every=1):
        super().__init__(params, {"lr": lr, "momentum": momentum, "update_every": update_every})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["buffer"] = torch.zeros_like(p)
                    if p.ndim == 2:
                        state["sides"] = [torch.zeros(n, n) for n in p.shape]
                        state["roots"] = [torch.eye(n) for n in p.shape]
                g = p.grad
                if p.ndim == 2:
                    left, right = state["sides"]
                    left.mul_(0.95).addmm_(g, g.T)
                    right.mul_(0.95).addmm_(g.T, g)
                    if state["step"] % group["update_every"] == 0:
                        state["roots"] = [inverse_root(side, 4) for side in state["sides"]]
                    update = state["roots"][0] @ g @ state["roots"][1]
                    update *= g.norm() / update.norm().clamp_min(1e-12)
                else:
                    update = g
                state["buffer"].mul_(group["momentum"]).add_(update)
                p.add_(state["buffer"], alpha=-group["lr"])
                state["step"] += 1
