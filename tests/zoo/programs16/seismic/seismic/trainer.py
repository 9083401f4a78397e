from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

from .data import Traces
from .model import Picker


@dataclass
class Config:
    length: int = 1024
    train_traces: int = 960
    val_traces: int = 96
    batch_size: int = 24
    epochs: int = 4
    log_every: int = 20
    learning_rate: float = 1e-3


class MeanPickError:
    def __init__(self):
        self.total, self.count = torch.zeros(()), 0

    def update(self, logits, onsets):
        self.total += (logits.argmax(1) - onsets).abs().sum()
        self.count += len(onsets)

    def compute(self):
        return float(self.total) / self.count


class Trainer:
    def __init__(self, cfg: Config):
        self.cfg, self.step = cfg, 0
        self.train_loader = DataLoader(
            Traces(cfg.train_traces, cfg.length, 1),
            batch_size=cfg.batch_size,
            shuffle=True,
            num_workers=1,
            persistent_workers=True,
        )
        self.val_loader = DataLoader(
            Traces(cfg.val_traces, cfg.length, 2), batch_size=cfg.batch_size
        )
        self.model = Picker()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.learning_rate)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.train_epoch()
            print(f"epoch {epoch}: pick error {self.validate():.2f}")
        torch.save(self.model.state_dict(), "picker.pt")

    def train_epoch(self):
        self.model.train()
        for traces, onsets in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(traces), onsets)
            loss.backward()
            self.optimizer.step()
            self.step += 1
            if self.step % self.cfg.log_every == 0:
                print(f"step {self.step}: loss {loss.item():.4f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        metric = MeanPickError()
        for traces, onsets in self.val_loader:
            metric.update(self.model(traces), onsets)
        return metric.compute()
