from dataclasses import dataclass


@dataclass
class ShelfConfig:
    images: int = 3584
    source_size: int = 96
    crop_size: int = 72
    classes: int = 12
    batch_size: int = 32
    num_workers: int = 0
    learning_rate: float = 2e-3
    seed: int = 11
