import json
import time

import lightning as L
import numpy as np


class Stopwatch(L.Callback):
    def on_train_start(self, trainer, module):
        self.started = time.perf_counter()

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.started


class ParameterReport(L.Callback):
    """Histograms of weights and gradients for the dashboard."""

    def __init__(self, path, every, bins=64):
        self.path, self.every, self.bins = path, every, bins

    def on_train_start(self, trainer, module):
        self.file = open(self.path, "w")

    def summarise(self, tensor):
        values = tensor.detach().numpy().ravel()
        counts, edges = np.histogram(values, bins=self.bins)
        return {
            "mean": float(values.mean()),
            "std": float(values.std()),
            "counts": counts.tolist(),
            "edges": [round(float(edge), 6) for edge in edges],
        }

    def on_after_backward(self, trainer, module):
        if trainer.global_step % self.every:
            return
        record = {"step": trainer.global_step}
        for name, parameter in module.named_parameters():
            record[name] = self.summarise(parameter)
            record[name + ".grad"] = self.summarise(parameter.grad)
        self.file.write(json.dumps(record) + "\n")

    def on_train_end(self, trainer, module):
        self.file.close()
