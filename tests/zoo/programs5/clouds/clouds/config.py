from dataclasses import dataclass


@dataclass
class Config:
    size: int = 32
    width: int = 32
    attention_at: tuple = (32, 8)
    noise_steps: int = 200
    batch: int = 4
    steps: int = 60
    lr: float = 2e-4


SMALL_ATTENTION = {"attention_at": (8,)}
