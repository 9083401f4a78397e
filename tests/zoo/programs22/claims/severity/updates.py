import torch


def layer_groups(model, lr, decay):
    """A group per layer; the rate falls towards the input."""
    layers = model.layers()
    groups = []
    for depth, layer in enumerate(layers):
        rate = lr * decay ** (len(layers) - 1 - depth)
        groups.append({"params": list(layer.parameters()), "lr": rate})
    return groups


class LayerwiseAdam(torch.optim.Optimizer):
    """Adam with decoupled weight decay and a rate of its own for each layer."""

    def __init__(self, groups, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        defaults = {"lr": 1e-3, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        super().__init__(groups, defaults)

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["step"] = 0
                    state["mean"] = torch.zeros_like(parameter)
                    state["square"] = torch.zeros_like(parameter)
                state["step"] += 1
                gradient = parameter.grad
                state["mean"] = beta1 * state["mean"] + (1 - beta1) * gradient
                state["square"] = beta2 * state["square"] + (1 - beta2) * gradient**2
                mean = state["mean"] / (1 - beta1 ** state["step"])
                square = state["square"] / (1 - beta2 ** state["step"])
                update = mean / (torch.sqrt(square) + group["eps"])
                update = update + group["weight_decay"] * parameter
                parameter.copy_(parameter - group["lr"] * update)


def make_optimizer(name, model, lr=1e-3, decay=0.8):
    groups = layer_groups(model, lr, decay)
    if name == "layerwise":
        return LayerwiseAdam(groups)
    return torch.optim.AdamW(groups, weight_decay=0.01, fused=True)
