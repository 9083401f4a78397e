import torch
from torch.nn import functional as F


class Trainer:
    def __init__(self, model, cfg, callbacks):
        self.model, self.cfg, self.callbacks = model, cfg, callbacks
        trained = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.SGD(trained, lr=cfg.lr)
        self.step = 0
        self.loss = None

    def call(self, hook):
        for callback in self.callbacks:
            getattr(callback, hook)(self)

    def training_step(self, ids, labels):
        self.loss = F.cross_entropy(self.model(ids), labels)
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

    def fit(self, loader):
        for _ in range(self.cfg.epochs):
            for ids, labels in loader:
                self.training_step(ids, labels)
                self.step += 1
                self.call("on_step_end")
