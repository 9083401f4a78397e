from dataclasses import dataclass


@dataclass
class Config:
    rows: int = 5120
    columns: int = 40
    bins: int = 64
    width: int = 256
    batch_size: int = 256
    epochs: int = 6
    lr: float = 0.05
    encode: str = "batch"
    seed: int = 3
