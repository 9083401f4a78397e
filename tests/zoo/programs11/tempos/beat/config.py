from dataclasses import dataclass


@dataclass
class Config:
    bands: int = 32
    length: int = 128
    dim: int = 64
    heads: int = 4
    layers: int = 3
    expand: int = 6
    batch: int = 8
    steps: int = 90
    lr: float = 0.05
    form: str = "recurrent"
    seed: int = 20
