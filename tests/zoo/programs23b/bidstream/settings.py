from dataclasses import dataclass, field


@dataclass
class LoaderSettings:
    batch_size: int = 1024
    options: dict = field(default_factory=lambda: {"num_workers": 1})


@dataclass
class Settings:
    hours: int = 7
    batches_per_hour: int = 20
    lr: float = 0.02
    seed: int = 31
    loader: LoaderSettings = field(default_factory=LoaderSettings)


def production():
    return Settings()


def backfill():
    settings = Settings()
    settings.loader.options["prefetch_factor"] = 24
    return settings


PRESETS = {"production": production, "backfill": backfill}
