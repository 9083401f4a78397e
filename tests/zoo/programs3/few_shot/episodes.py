import numpy as np
import torch
from torch.utils.data import Dataset

CLASSES, SIDE = 200, 28


class Glyphs:
    """Strokes of made-up letters; each process draws its own alphabet once."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        axis = np.linspace(0, 1, SIDE)
        self.letters = np.zeros((CLASSES, SIDE, SIDE), np.float32)
        for letter in self.letters:
            ends = rng.random((4, 2, 2))
            for t in np.linspace(0, 1, 24):
                for (y0, x0), (y1, x1) in ends:
                    y, x = y0 + t * (y1 - y0), x0 + t * (x1 - x0)
                    np.maximum(
                        letter,
                        np.exp(-((axis - y)[:, None] ** 2 + (axis - x) ** 2) * 900),
                        out=letter,
                        casting="same_kind",
                    )


class Episodes(Dataset):
    """A task: some letters, a few pictures of each to learn from, others to be tested on."""

    def __init__(self, count, ways=5, shots=4, queries=4):
        self.count, self.ways, self.shots, self.queries = count, ways, shots, queries
        self.glyphs = None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.glyphs is None:
            self.glyphs = Glyphs()
        rng = np.random.default_rng(index)
        chosen = rng.choice(CLASSES, self.ways, replace=False)
        each = self.shots + self.queries
        pictures = self.glyphs.letters[chosen][:, None].repeat(each, 1)
        pictures = pictures + rng.normal(0, 0.3, pictures.shape).astype(np.float32)
        return torch.from_numpy(pictures[:, :, None].astype(np.float32))
