"""Transforms on PIL images, in the style of torchvision."""

import random

import numpy as np
import torch
from PIL import Image


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class Resize:
    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        return image.resize((self.size, self.size), Image.BILINEAR)


class RandomFlip:
    def __call__(self, image):
        return image.transpose(Image.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


class RandomPerspective:
    """As seen by somebody who does not stand right in front."""

    def __init__(self, distortion=0.3):
        self.distortion = distortion

    def __call__(self, image):
        w, h = image.size
        corners = [(0, 0), (w, 0), (w, h), (0, h)]
        moved = [
            (
                x + self.distortion * w * random.uniform(-0.5, 0.5),
                y + self.distortion * h * random.uniform(-0.5, 0.5),
            )
            for x, y in corners
        ]
        rows, right = [], []
        for (x, y), (u, v) in zip(corners, moved):
            rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
            right += [u, v]
        coefficients = np.linalg.solve(np.array(rows, float), np.array(right, float))
        return image.transform((w, h), Image.PERSPECTIVE, coefficients, Image.BICUBIC)


class ToTensor:
    def __call__(self, image):
        pixels = torch.from_numpy(np.asarray(image, dtype=np.float32) / 255)
        return pixels.permute(2, 0, 1).contiguous()


class Normalize:
    def __init__(self, mean, std):
        self.mean = torch.tensor(mean)[:, None, None]
        self.std = torch.tensor(std)[:, None, None]

    def __call__(self, pixels):
        return (pixels - self.mean) / self.std
