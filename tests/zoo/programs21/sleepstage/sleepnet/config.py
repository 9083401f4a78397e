import argparse
from dataclasses import dataclass, fields


@dataclass
class Config:
    seed: int = 7
    nights: int = 12
    epochs_per_night: int = 160
    samples: int = 400
    batch_size: int = 8
    steps: int = 80
    lr: float = 3e-4
    width: int = 256
    heads: int = 4
    layers: int = 4
    save_every: int = 3
    keep: int = 2
    out: str = "runs"

    @classmethod
    def from_args(cls):
        parser = argparse.ArgumentParser()
        for f in fields(cls):
            parser.add_argument(
                "--" + f.name.replace("_", "-"), type=type(f.default), default=f.default
            )
        return cls(**vars(parser.parse_args()))
