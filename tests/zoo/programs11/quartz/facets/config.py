from dataclasses import dataclass


@dataclass
class Config:
    pixels: int = 784
    hidden: int = 512
    code: int = 24
    batch: int = 256
    images: int = 4096
    epochs: int = 8
    lr: float = 1e-3
    anneal: str = "closure"
    seed: int = 0


def beta_at(epoch, cfg):
    """Weight of the divergence: rises from epoch to epoch."""
    return (epoch + 1) / cfg.epochs
