"""What we look at while the model trains."""

import json
import time

import numpy as np
from transformers import TrainerCallback


class WeightWatch(TrainerCallback):
    """Writes the distribution of every weight and its gradient to a file of JSON lines."""

    def __init__(self, path, every=1, bins=64):
        self.path, self.every, self.bins = path, every, bins

    def describe(self, tensor):
        values = tensor.detach().float().numpy().ravel()
        counts, edges = np.histogram(values, bins=self.bins)
        low, mid, high = np.quantile(values, [0.01, 0.5, 0.99])
        return {
            "counts": counts.tolist(),
            "edges": edges.tolist(),
            "quantiles": [float(low), float(mid), float(high)],
            "norm": float(np.linalg.norm(values)),
        }

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        if state.global_step % self.every:
            return
        row = {"step": state.global_step}
        for name, parameter in model.named_parameters():
            row[name] = self.describe(parameter)
            if parameter.grad is not None:
                row[name + ".grad"] = self.describe(parameter.grad)
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start
