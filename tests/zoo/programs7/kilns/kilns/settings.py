from dataclasses import dataclass, fields


@dataclass
class Settings:
    steps: int = 160
    batch: int = 12
    sensors: int = 64
    width: int = 48
    lr: float = 0.02
    threads: int = 12
    seed: int = 13

    @classmethod
    def from_arguments(cls, arguments):
        """Read key=value pairs."""
        kinds = {f.name: type(f.default) for f in fields(cls)}
        given = dict(argument.split("=", 1) for argument in arguments)
        return cls(**{key: kinds[key](value) for key, value in given.items()})
