import gzip
from pathlib import Path

import numpy as np


def prepare(folder, n, speakers, length, packed, seed=0):
    rng = np.random.default_rng(seed)
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    lines = []
    t = np.arange(length) / 8000.0
    for i in range(n):
        speaker = i % speakers
        wave = 0.5 * np.sin(2 * np.pi * (110 + 35 * speaker) * t)
        wave += 0.1 * rng.standard_normal(length)
        raw = (wave * 8000).astype(np.int16).tobytes()
        name = f"spk{speaker:02d}-{i:04d}"
        if packed:
            path = folder / f"{name}.raw.gz"
            path.write_bytes(gzip.compress(raw, 1))
            lines.append(f"{name} gzip -dc {path} |")
        else:
            path = folder / f"{name}.raw"
            path.write_bytes(raw)
            lines.append(f"{name} {path}")
    (folder / "wav.scp").write_text("\n".join(lines) + "\n")
    return folder / "wav.scp"
