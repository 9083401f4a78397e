"""Lion, as in the paper's pseudocode."""

import torch


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p)
                m = state["momentum"]
                update = (m * beta1 + p.grad * (1 - beta1)).sign()
                p.sub_(group["lr"] * (update + group["weight_decay"] * p))
                state["momentum"] = m * beta2 + p.grad * (1 - beta2)


class FlatLion(Lion):
    """The same on one flat vector: the parameters become views of it."""

    def __init__(self, params, **options):
        params = list(params)
        super().__init__(params, **options)
        self.flat = torch.cat([p.detach().flatten() for p in params])
        self.grad = torch.zeros_like(self.flat)
        self.momentum = torch.zeros_like(self.flat)
        begin = 0
        for p in params:
            end = begin + p.numel()
            p.data = self.flat[begin:end].view_as(p)
            p.grad = self.grad[begin:end].view_as(p)
            begin = end

    def zero_grad(self, set_to_none=True):
        self.grad.zero_()

    @torch.no_grad()
    def step(self, closure=None):
        (group,) = self.param_groups
        beta1, beta2 = group["betas"]
        update = self.momentum.lerp(self.grad, 1 - beta1).sign_()
        self.flat.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=group["lr"])
        self.momentum.lerp_(self.grad, 1 - beta2)
