import colorsys

import numpy as np


class HueJitter:
    """Turn the hue of every pixel by the same random amount."""

    def __init__(self, amount):
        self.amount = amount

    def __call__(self, image):
        shift = np.random.uniform(-self.amount, self.amount)
        out = np.empty_like(image)
        for row in range(image.shape[0]):
            for column in range(image.shape[1]):
                h, s, v = colorsys.rgb_to_hsv(*image[row, column])
                out[row, column] = colorsys.hsv_to_rgb((h + shift) % 1.0, s, v)
        return out


class HueRotation:
    """The same as a rotation about the grey axis, one matrix for the picture."""

    def __init__(self, amount):
        self.amount = amount

    def __call__(self, image):
        angle = 2 * np.pi * np.random.uniform(-self.amount, self.amount)
        cos, sin = np.cos(angle), np.sin(angle) / np.sqrt(3)
        matrix = cos * np.eye(3) + (1 - cos) / 3
        matrix += sin * np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
        return (image @ matrix.T.astype(np.float32)).clip(0, 1)


class RandomCrop:
    def __init__(self, size, padding):
        self.size, self.padding = size, padding

    def __call__(self, image):
        image = np.pad(image, ((self.padding,) * 2, (self.padding,) * 2, (0, 0)))
        top, left = np.random.randint(0, 2 * self.padding + 1, 2)
        return image[top : top + self.size, left : left + self.size]


class RandomFlip:
    def __call__(self, image):
        return image[:, ::-1] if np.random.random() < 0.5 else image
