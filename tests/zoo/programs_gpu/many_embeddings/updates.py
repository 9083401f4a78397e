"""Optimizers of our own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch


class Momentum(torch.optim.Optimizer):
    """SGD with momentum and weight decay."""

    def __init__(self, parameters: Iterable[torch.Tensor], lr: float) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": 0.9, "decay": 1e-4})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                gradient = parameter.grad + group["decay"] * parameter
                state = self.state[parameter]
                if "velocity" not in state:
                    state["velocity"] = torch.zeros_like(parameter)
                state["velocity"].mul_(group["momentum"]).add_(gradient)
                parameter.sub_(group["lr"] * state["velocity"])
