from dataclasses import dataclass


@dataclass
class Config:
    bank: str = "bank.npz"
    notes: int = 10000
    length: int = 1024
    chords: int = 640
    instruments: int = 20
    batch_size: int = 64
    workers: int = 1
    keep_workers: bool = False
    epochs: int = 10
    lr: float = 0.05
