"""Transforms for single-channel pictures, as arrays of floats."""

import numpy as np


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, picture):
        for transform in self.transforms:
            picture = transform(picture)
        return picture


class RandomFlip:
    def __call__(self, picture):
        return picture[:, ::-1].copy() if np.random.random() < 0.5 else picture


class RandomShift:
    def __init__(self, pixels):
        self.pixels = pixels

    def __call__(self, picture):
        dy, dx = np.random.randint(-self.pixels, self.pixels + 1, 2)
        return np.roll(picture, (dy, dx), (0, 1))


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, picture):
        return (picture - self.mean) / self.std


class Elastic:
    """Bend the picture along a smooth random field."""

    def __init__(self, strength):
        self.strength = strength

    def field(self, size):
        coarse = np.random.uniform(-self.strength, self.strength, (2, 4, 4))
        return np.kron(coarse, np.ones((size // 4, size // 4)))

    def __call__(self, picture):
        size = len(picture)
        dy, dx = self.field(size)
        out = np.empty_like(picture)
        for y in range(size):
            for x in range(size):
                sy = min(max(int(y + dy[y, x]), 0), size - 1)
                sx = min(max(int(x + dx[y, x]), 0), size - 1)
                out[y, x] = picture[sy, sx]
        return out


class FastElastic(Elastic):
    """The same, for all pixels at once."""

    def __call__(self, picture):
        size = len(picture)
        dy, dx = self.field(size)
        ys, xs = np.mgrid[:size, :size]
        sy = np.clip((ys + dy).astype(int), 0, size - 1)
        sx = np.clip((xs + dx).astype(int), 0, size - 1)
        return picture[sy, sx]
