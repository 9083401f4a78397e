from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    vocab: int = 96
    context: int = 64
    dim: int = 128
    heads: int = 4
    depth: int = 2
    micro_batch: int = 8
    accumulate: int = 2
    updates: int = 80
    warmup: int = 10
    lr: float = 1e-3
    seed: int = 77
