from dataclasses import dataclass


@dataclass
class Config:
    views: int = 288
    side: int = 64
    classes: int = 6
    batch_size: int = 8
    epochs: int = 2
    lr: float = 0.02
    blur: str = "full"
    seed: int = 17
