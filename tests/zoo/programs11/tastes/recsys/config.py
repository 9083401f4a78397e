from dataclasses import dataclass


@dataclass
class Config:
    users: int = 3000
    items: int = 8000
    liked: int = 30
    profile: int = 128
    width: int = 512
    dim: int = 64
    negatives: int = 32
    batch: int = 640
    epochs: int = 6
    lr: float = 0.1
    sampler: str = "exact"
    seed: int = 18


def update(cfg, pairs):
    for key, value in pairs:
        setattr(cfg, key, value)
    return cfg
