import bz2
from pathlib import Path

import numpy as np


def write_shards(folder, count, rows, length, kinds, seed=0):
    rng = np.random.default_rng(seed)
    Path(folder).mkdir(exist_ok=True)
    paths = []
    for i in range(count):
        labels = rng.integers(0, kinds, (rows, 1))
        t = np.arange(length)
        traces = 3000 * np.sin(t * (labels + 2) / 90.0) + 900 * rng.standard_normal((rows, length))
        body = np.concatenate((labels, traces), axis=1).astype(np.int16)
        path = Path(folder) / f"shard-{i:03d}.bz2"
        path.write_bytes(bz2.compress(body.tobytes()))
        paths.append(path)
    return paths


def read_shard(path, length):
    raw = bz2.decompress(Path(path).read_bytes())
    body = np.frombuffer(raw, dtype=np.int16).reshape(-1, length + 1)
    return body[:, 0], body[:, 1:]
