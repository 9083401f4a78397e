from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from .model import TabularTransformer


@dataclass
class Config:
    customers: int = 8320
    numeric: int = 14
    categorical: int = 10
    levels: int = 20
    width: int = 48
    batch_size: int = 64
    learning_rate: float = 1e-3


def make_customers(cfg: Config):
    generator = torch.Generator().manual_seed(31)
    numbers = torch.randn(cfg.customers, cfg.numeric, generator=generator)
    codes = torch.randint(cfg.levels, (cfg.customers, cfg.categorical), generator=generator)
    left = (numbers[:, 0] + (codes[:, 0] > cfg.levels // 2) > 0.7).float()
    return TensorDataset(numbers, codes, left)


class Trainer:
    def __init__(self, cfg: Config, callbacks):
        self.cfg, self.callbacks, self.step = cfg, callbacks, 0
        self.accelerator = Accelerator(cpu=True)
        model = TabularTransformer(cfg.numeric, cfg.categorical, cfg.levels, cfg.width)
        optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.learning_rate)
        loader = DataLoader(make_customers(cfg), batch_size=cfg.batch_size, shuffle=True)
        self.model, self.optimizer, self.loader = self.accelerator.prepare(model, optimizer, loader)
        self.criterion = nn.BCEWithLogitsLoss()

    def fit(self, epochs):
        for _ in range(epochs):
            for numbers, codes, left in self.loader:
                loss = self.criterion(self.model(numbers, codes), left)
                self.accelerator.backward(loss)
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.step += 1
                for callback in self.callbacks:
                    callback.on_step_end(self, loss)
        for callback in self.callbacks:
            callback.on_train_end(self)
