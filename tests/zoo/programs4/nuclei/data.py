"""Synthetic microscopy: blobs on noise, with the weight maps of the U-Net paper."""

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import Dataset


def draw(rng, size):
    y, x = np.mgrid[:size, :size]
    mask = np.zeros((size, size), bool)
    for _ in range(rng.integers(6, 14)):
        cy, cx = rng.uniform(4, size - 4, 2)
        a, b = rng.uniform(3, 8, 2)
        mask |= ((y - cy) / a) ** 2 + ((x - cx) / b) ** 2 < 1
    image = mask * rng.uniform(0.6, 1.2) + rng.normal(0, 0.4, mask.shape)
    return image.astype(np.float32)[None], mask


def border_distance(mask, reach=24):
    """How far each pixel is from the nearest border, up to `reach` pixels."""
    inside = mask.float()[:, None]
    outside = 1 - inside
    distance = torch.zeros_like(inside)
    for _ in range(reach):
        inside = -F.max_pool2d(-inside, 3, 1, 1)
        outside = -F.max_pool2d(-outside, 3, 1, 1)
        distance += inside + outside
    return distance[:, 0]


def weight_map(mask, w0=4.0, sigma=3.0):
    distance = border_distance(mask)
    share = mask.float().mean((1, 2), keepdim=True)
    balance = torch.where(mask, 1 - share, share)
    return balance + w0 * torch.exp(-(distance**2) / (2 * sigma**2))


class Nuclei(Dataset):
    def __init__(self, n, size=96, seed=0, with_weights=False):
        rng = np.random.default_rng(seed)
        self.samples = [draw(rng, size) for _ in range(n)]
        self.with_weights = with_weights

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        image, mask = self.samples[i]
        image, mask = torch.from_numpy(image), torch.from_numpy(mask)
        if torch.rand(()) < 0.5:
            image, mask = image.flip(-1), mask.flip(-1)
        if self.with_weights:
            return image, mask, weight_map(mask[None])[0]
        return image, mask
