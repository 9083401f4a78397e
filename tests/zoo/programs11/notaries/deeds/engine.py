import torch
from torch.nn import functional as F


class Engine:
    def __init__(self, model, optimizer, bins=None):
        self.model, self.optimizer, self.bins = model, optimizer, bins
        self.seen, self.total = 0, 0.0

    def to_inputs(self, batch):
        x, y = batch
        if self.bins is not None:
            x = torch.from_numpy(self.bins(x.numpy()))
        return x, y

    def step(self, batch):
        x, y = self.to_inputs(batch)
        loss = F.smooth_l1_loss(self.model(x).squeeze(1), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.seen += len(y)
        self.total += loss.item() * len(y)

    def fit(self, loader, epochs):
        steps = 0
        for _ in range(epochs):
            for batch in loader:
                self.step(batch)
                steps += 1
        return steps
