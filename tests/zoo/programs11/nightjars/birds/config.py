from dataclasses import dataclass


@dataclass
class Config:
    sample_rate: int = 8000
    n_fft: int = 400
    hop: int = 256
    n_mels: int = 48
    n_clips: int = 320
    n_species: int = 12
    batch_size: int = 8
    epochs: int = 2
    lr: float = 0.02
    seed: int = 7
    filters: str = "local"
