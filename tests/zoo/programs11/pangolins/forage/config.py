from dataclasses import dataclass


@dataclass
class Config:
    obs: int = 64
    actions: int = 8
    width: int = 768
    capacity: int = 150_000
    envs: int = 16
    batch: int = 256
    updates: int = 100
    gamma: float = 0.98
    tau: float = 0.01
    alpha: float = 0.6
    lr: float = 3e-4
    buffer: str = "ranked"
    seed: int = 9
