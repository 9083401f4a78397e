import json

import lightning as L
import numpy as np


class WatchWeights(L.Callback):
    """Distribution of weights and gradients, one line of JSON for each look."""

    def __init__(self, path="weights.jsonl", every=1, bins=48):
        self.path = path
        self.every = every
        self.bins = bins

    def on_fit_start(self, trainer, pl_module):
        self.file = open(self.path, "w")

    def summary(self, tensor):
        values = tensor.detach().flatten().numpy()
        counts, edges = np.histogram(values, self.bins)
        return {
            "counts": counts.tolist(),
            "edges": edges.tolist(),
            "norm": float(np.linalg.norm(values)),
            "quantiles": np.quantile(values, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist(),
        }

    def on_before_optimizer_step(self, trainer, pl_module, optimizer):
        if trainer.global_step % self.every:
            return
        record = {"step": trainer.global_step}
        for name, parameter in pl_module.named_parameters():
            record[name] = self.summary(parameter)
            record[name + ".grad"] = self.summary(parameter.grad)
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def on_fit_end(self, trainer, pl_module):
        self.file.close()
