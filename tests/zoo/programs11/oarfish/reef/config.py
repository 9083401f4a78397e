from dataclasses import dataclass


@dataclass
class DataConfig:
    root: str = "frames"
    frames: int = 240
    side: int = 288
    crop: int = 64
    batch_size: int = 16
    workers: int = 0


@dataclass
class TrainConfig:
    epochs: int = 5
    lr: float = 0.02
    classes: int = 9
    seed: int = 5
