from dataclasses import dataclass


@dataclass
class Config:
    seed: int = 17
    tiles: int = 320
    valid_tiles: int = 24
    size: int = 96
    crop: int = 48
    bands: int = 4
    classes: int = 3
    width: int = 6
    batch_size: int = 8
    epochs: int = 4
    lr: float = 2e-3
    clip: float = 1.0
    num_workers: int = 0
