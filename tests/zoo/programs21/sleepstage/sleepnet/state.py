import os
from dataclasses import asdict
from pathlib import Path

import torch


class Snapshots:
    def __init__(self, cfg):
        self.folder = Path(cfg.out)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.keep = cfg.keep
        self.config = asdict(cfg)
        self.written = []

    def write(self, step, model, optimizer, loss):
        path = self.folder / f"step_{step:06d}.pt"
        partial = path.with_suffix(".tmp")
        state = {
            "step": step,
            "loss": loss,
            "config": self.config,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "rng": torch.get_rng_state(),
        }
        with open(partial, "wb") as f:
            torch.save(state, f)
            f.flush()
            os.fsync(f.fileno())
        partial.rename(path)
        self.written.append(path)
        while len(self.written) > self.keep:
            self.written.pop(0).unlink()
