from dataclasses import dataclass


@dataclass
class Config:
    inputs: int = 512
    width: int = 768
    dim: int = 256
    batch: int = 192
    steps: int = 90
    momentum: float = 0.99
    temperature: float = 0.2
    queue: int = 0
    lr: float = 0.05
    seed: int = 16
