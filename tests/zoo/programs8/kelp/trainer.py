"""A trainer that keeps the best model."""

import math
import os
import time
from dataclasses import dataclass, field

import torch


@dataclass
class TrainerConfig:
    max_steps: int = 90
    lr: float = 3e-4
    warmup: int = 10
    save_best_every: int = 1
    out_dir: str = "checkpoints"
    seed: int = 0


@dataclass
class TrainerState:
    step: int = 0
    best: float = math.inf
    smooth: float = math.nan
    history: list = field(default_factory=list)


class Trainer:
    def __init__(self, model, batches, config):
        self.model, self.batches, self.config = model, batches, config
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, fused=True)
        self.state = TrainerState()
        os.makedirs(config.out_dir, exist_ok=True)

    def set_lr(self):
        scale = min(1.0, (self.state.step + 1) / self.config.warmup)
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.lr * scale

    def save(self, name):
        path = os.path.join(self.config.out_dir, name)
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "step": self.state.step,
                "best": self.state.best,
            },
            path,
        )

    def training_step(self, batch):
        self.set_lr()
        loss = self.model(*batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss.item()

    def after_step(self, loss):
        s = self.state
        s.smooth = loss if math.isnan(s.smooth) else 0.95 * s.smooth + 0.05 * loss
        if s.smooth < s.best and s.step % self.config.save_best_every == 0:
            s.best = s.smooth
            self.save("best.pt")

    def fit(self):
        start = time.perf_counter()
        for batch in self.batches:
            loss = self.training_step(batch)
            self.state.step += 1
            self.after_step(loss)
            if self.state.step % 30 == 0:
                print(f"step {self.state.step} loss {self.state.smooth:.4f}")
            if self.state.step == self.config.max_steps:
                break
        return time.perf_counter() - start
