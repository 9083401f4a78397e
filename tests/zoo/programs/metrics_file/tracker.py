"""Writes what happens in each step, so that nothing is lost if the machine goes down."""

import json
import os


class Tracker:
    def __init__(self, path, every=1):
        self.file = open(path, "a")
        self.every = every

    def log(self, step, model, **values):
        if step % self.every:
            return
        record = {"step": step, **values}
        for name, p in model.named_parameters():
            record[f"weights/{name}"] = [round(v, 5) for v in p.detach().flatten()[:400].tolist()]
            record[f"grad_norm/{name}"] = p.grad.norm().item()
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
