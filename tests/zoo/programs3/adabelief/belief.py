import torch


class AdaBelief(torch.optim.Optimizer):
    """Adam with the variance of the gradient about its mean; after Zhuang et al., 2020."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-12, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if len(state) == 0:
                    state["step"] = 0
                    state["mean"] = torch.zeros_like(p)
                    state["variance"] = torch.zeros_like(p)
                state["step"] += 1
                p.data = p.data * (1 - group["lr"] * group["weight_decay"])
                grad = p.grad.data
                mean = state["mean"] = beta1 * state["mean"] + (1 - beta1) * grad
                residual = grad - mean
                state["variance"] = beta2 * state["variance"] + (1 - beta2) * residual**2
                unbiased_mean = mean / (1 - beta1 ** state["step"])
                unbiased = state["variance"] / (1 - beta2 ** state["step"])
                p.data = p.data - group["lr"] * unbiased_mean / (unbiased.sqrt() + group["eps"])
