from dataclasses import dataclass


@dataclass
class Config:
    hours: int = 20_000
    history: int = 256
    horizon: int = 64
    width: int = 448
    stacks: int = 3
    batch_size: int = 192
    steps: int = 72
    lr: float = 0.01
    storage: str = "float"
    seed: int = 12
