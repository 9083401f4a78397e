from dataclasses import dataclass


@dataclass
class Config:
    shards: int = 3
    passes: int = 2
    rows: int = 1024
    length: int = 3072
    kinds: int = 10
    batch: int = 64
    prefetch: int = 2
    lr: float = 0.02
