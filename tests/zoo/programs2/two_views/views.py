"""Random views of a batch of pictures (B, 3, H, W)."""

import numpy as np
import torch


def crop_and_resize(pictures, low=0.5):
    count, _, height, width = pictures.shape
    scale = np.random.uniform(low, 1.0, count)
    top = np.random.uniform(0, 1 - scale) * (height - 1)
    left = np.random.uniform(0, 1 - scale) * (width - 1)
    ys = top[:, None] + scale[:, None] * np.arange(height)
    xs = left[:, None] + scale[:, None] * np.arange(width)
    y0, x0 = np.floor(ys).astype(int), np.floor(xs).astype(int)
    y1, x1 = np.minimum(y0 + 1, height - 1), np.minimum(x0 + 1, width - 1)
    wy = (ys - y0)[:, None, :, None].astype(np.float32)
    wx = (xs - x0)[:, None, None, :].astype(np.float32)
    batch = np.arange(count)[:, None, None, None]
    channel = np.arange(3)[None, :, None, None]

    def at(y, x):
        return pictures[batch, channel, y[:, None, :, None], x[:, None, None, :]]

    upper = at(y0, x0) * (1 - wx) + at(y0, x1) * wx
    lower = at(y1, x0) * (1 - wx) + at(y1, x1) * wx
    return upper * (1 - wy) + lower * wy


def blur(pictures, most=1.5):
    sigma = np.random.uniform(0.1, most, len(pictures))[:, None, None]
    fy = np.fft.fftfreq(pictures.shape[2])[None, :, None]
    fx = np.fft.rfftfreq(pictures.shape[3])[None, None, :]
    gain = np.exp(-2 * (np.pi * sigma) ** 2 * (fy**2 + fx**2))[:, None]
    return np.fft.irfft2(np.fft.rfft2(pictures) * gain, s=pictures.shape[2:])


def color(pictures, strength=0.4):
    gain = np.random.uniform(1 - strength, 1 + strength, (len(pictures), 3, 1, 1))
    mean = pictures.mean((1, 2, 3), keepdims=True)
    return (pictures - mean) * gain + mean


def random_view(pictures):
    pictures = crop_and_resize(pictures)
    pictures = color(pictures)
    pictures = blur(pictures)
    return torch.from_numpy(np.ascontiguousarray(pictures, dtype=np.float32))


def two_views(pictures):
    pictures = pictures.numpy()
    return random_view(pictures), random_view(pictures)
