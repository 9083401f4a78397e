"""Map tiles in regional archives: an image and its land-use class in every member's name."""

import io
import zipfile
from pathlib import Path

import numpy as np

SIZE = 32
CLASSES = 6


def encode(tile):
    buffer = io.BytesIO()
    np.save(buffer, tile)
    return buffer.getvalue()


def decode(data):
    return np.load(io.BytesIO(data))


def write_region(path, count, rng):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for number in range(count):
            kind = int(rng.integers(CLASSES))
            tile = rng.normal(kind / 4, 1.0, size=(3, SIZE, SIZE)).astype(np.float32)
            archive.writestr(f"z14/{number:05d}_{kind}.npy", encode(tile))


def write_regions(folder, regions, tiles_each, seed):
    rng = np.random.default_rng(seed)
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    paths = []
    for region in range(regions):
        path = folder / f"region_{region:02d}.zip"
        write_region(path, tiles_each, rng)
        paths.append(path)
    return paths


def read_index(paths):
    """Pairs of archive and member, in the order of the archives."""
    index = []
    for path in paths:
        with zipfile.ZipFile(path) as archive:
            index.extend((path, name) for name in archive.namelist())
    return index
