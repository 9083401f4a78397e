from dataclasses import dataclass


@dataclass(frozen=True)
class Objective:
    kl_weight: float = 0.0
    free_nats: float = 0.5


@dataclass(frozen=True)
class Config:
    sensors: int = 96
    hidden: int = 384
    latent: int = 24
    batch_size: int = 256
    epochs: int = 5
    steps_per_epoch: int = 36
    learning_rate: float = 1e-3
