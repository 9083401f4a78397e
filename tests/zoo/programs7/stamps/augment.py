"""Augmentations on float images of shape (height, width, channels)."""

import numpy as np


class Compose:
    def __init__(self, *stages):
        self.stages = stages

    def __call__(self, image, rng):
        for stage in self.stages:
            image = stage(image, rng)
        return image


class RandomCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, image, rng):
        top = int(rng.integers(0, image.shape[0] - self.size + 1))
        left = int(rng.integers(0, image.shape[1] - self.size + 1))
        return image[top : top + self.size, left : left + self.size]


class RandomFlip:
    def __call__(self, image, rng):
        return image[:, ::-1] if rng.random() < 0.5 else image


class Soften:
    """Blur with a Gaussian of random width."""

    def __init__(self, radius=5, low=0.5, high=2.0):
        self.radius, self.low, self.high = radius, low, high

    def __call__(self, image, rng):
        offsets = np.arange(-self.radius, self.radius + 1)
        kernel = np.exp(-0.5 * (offsets / rng.uniform(self.low, self.high)) ** 2)
        kernel = (kernel / kernel.sum()).astype(np.float32)
        for axis in (0, 1):
            image = sum(
                w * np.roll(image, int(o), axis) for w, o in zip(kernel, offsets, strict=True)
            )
        return image


class Standardize:
    def __call__(self, image, rng):
        return (image - image.mean((0, 1))) / (image.std((0, 1)) + 1e-4)
