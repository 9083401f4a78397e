from dataclasses import dataclass


@dataclass
class Config:
    hashes: int = 150_000
    dim: int = 48
    width: int = 1024
    genres: int = 40
    words: int = 12
    books: int = 7680
    batch: int = 256
    epochs: int = 3
    lr: float = 1e-3
    tables: str = "dense"
    seed: int = 21
