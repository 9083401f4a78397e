"""Kronecker-factored preconditioning, after Gupta et al. 2018."""

import torch


def inverse_root(matrix, order, eps):
    values, vectors = torch.linalg.eigh(matrix)
    return (vectors * values.clamp_min(eps).pow(-1.0 / order)) @ vectors.T


class Kron(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, momentum=0.9, eps=1e-4, refresh=1):
        super().__init__(params, {"lr": lr, "momentum": momentum, "eps": eps, "refresh": refresh})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["count"] = 0
                    state["velocity"] = torch.zeros_like(p)
                    if p.ndim == 2:
                        state["stats"] = [torch.eye(n) * group["eps"] for n in p.shape]
                        state["roots"] = [torch.eye(n) for n in p.shape]
                direction = p.grad
                if p.ndim == 2:
                    if state["count"] % group["refresh"] == 0:
                        left, right = state["stats"]
                        left.addmm_(p.grad, p.grad.T)
                        right.addmm_(p.grad.T, p.grad)
                        state["roots"] = [inverse_root(m, 4, group["eps"]) for m in (left, right)]
                    direction = state["roots"][0] @ p.grad @ state["roots"][1]
                state["count"] += 1
                state["velocity"].mul_(group["momentum"]).add_(direction)
                p.sub_(state["velocity"], alpha=group["lr"])
