from torch import nn


def build_model(cfg):
    return nn.Sequential(
        nn.Linear(cfg.columns * cfg.bins, cfg.width),
        nn.ReLU(),
        nn.Linear(cfg.width, cfg.width),
        nn.ReLU(),
        nn.Linear(cfg.width, 1),
    )
