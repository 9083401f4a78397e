"""Day-long two-lead recordings, one file each, with the beats a cardiologist marked."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

RATE = 250
LEADS = 2
WINDOW = 4 * RATE


@dataclass(frozen=True)
class Beat:
    path: Path
    sample: int
    kind: int


def synthesize(hours, rng):
    size = int(hours * 3600 * RATE)
    seconds = np.arange(size, dtype=np.float32) / RATE
    pulse = 300 * np.sin(2 * np.pi * 1.2 * seconds).astype(np.float32)
    leads = np.stack([pulse, 0.6 * pulse])
    leads += 60 * rng.standard_normal(leads.shape, dtype=np.float32)
    return leads.astype(np.int16)


def write_study(folder, patients, beats_each, hours=10, seed=0):
    rng = np.random.default_rng(seed)
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    beats = []
    for patient in range(patients):
        leads = synthesize(hours, rng)
        path = folder / f"patient{patient:03d}.npy"
        for sample in rng.integers(WINDOW, leads.shape[1] - WINDOW, size=beats_each):
            kind = int(rng.integers(4))
            leads[:, sample : sample + 30] += np.int16(250 * kind)
            beats.append(Beat(path, int(sample), kind))
        np.save(path, leads)
    return beats
