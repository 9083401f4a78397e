import argparse
from dataclasses import dataclass, fields


@dataclass
class Config:
    frames: int = 1280
    crop: int = 56
    batch_size: int = 40
    epochs: int = 4
    workers: int = 0
    lr: float = 2e-3
    seed: int = 11

    @classmethod
    def from_command_line(cls):
        parser = argparse.ArgumentParser(description="Road damage from dashcam frames")
        for field in fields(cls):
            flag = "--" + field.name.replace("_", "-")
            parser.add_argument(flag, type=field.type, default=field.default)
        return cls(**vars(parser.parse_args()))
