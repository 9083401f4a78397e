from dataclasses import dataclass


@dataclass
class Config:
    vocab: int = 60_000
    dim: int = 256
    heads: int = 4
    layers: int = 2
    rank: int = 8
    labels: int = 5
    length: int = 32
    batch: int = 10
    samples: int = 450
    epochs: int = 2
    lr: float = 0.05
    save_every: int = 5
    save: str = "model"
    out: str = "checkpoints"
    seed: int = 4
