from torch import nn
from torch.nn import functional as F


def build_model(cfg):
    return nn.Sequential(
        nn.Unflatten(1, (1, cfg.length)),
        nn.Conv1d(1, 32, 16, stride=4, padding=6),
        nn.ReLU(),
        nn.Conv1d(32, 64, 8, stride=4, padding=2),
        nn.ReLU(),
        nn.Conv1d(64, 128, 5, padding=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(128, cfg.instruments),
    )


def train_one_epoch(model, loader, optimizer):
    steps = 0
    for mix, label in loader:
        loss = F.cross_entropy(model(mix), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    return steps, loss.item()
