import dataclasses
import math


@dataclasses.dataclass(frozen=True)
class Settings:
    inputs: int = 48
    hidden: tuple = (320, 320, 320)
    outputs: int = 20
    batch: int = 1024
    steps: int = 120
    refresh: int = 10
    lr: float = 2e-3
    decay: float = 1e-4
    b1: float = 0.9
    b2: float = 0.99
    eps: float = 1e-8


def cosine(settings, step):
    """The rate is held for `refresh` steps."""
    held = step // settings.refresh * settings.refresh
    return 0.5 * settings.lr * (1 + math.cos(math.pi * held / settings.steps))
