import torch
from torch import nn
from torch.nn import functional as F

from comm import average_gradients


def build_model(features, width, targets):
    return nn.Sequential(
        nn.Linear(features, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, targets),
    )


class Accumulator:
    """Adds the gradients of several small batches up before an update."""

    def __init__(self, model, optimizer, count, average):
        self.model, self.optimizer = model, optimizer
        self.count, self.average = count, average
        self.seen = 0

    def backward(self, loss):
        (loss / self.count).backward()
        self.seen += 1
        last = self.seen % self.count == 0
        if last or self.average == "always":
            average_gradients(self.model)
        if last:
            self.optimizer.step()
            self.optimizer.zero_grad()


def train(model, loader, accumulator, epochs):
    steps = 0
    total = torch.zeros(())
    for _ in range(epochs):
        for x, y in loader:
            loss = F.mse_loss(model(x), y)
            accumulator.backward(loss)
            total += loss.detach()
            steps += 1
    return steps, total.item() / steps
