"""Dashcam frames with four classes of damage, augmented as they are read."""

import numpy as np
import torch
from torch.utils.data import Dataset

SIZE = 72
CLASSES = ("intact", "longitudinal", "alligator", "pothole")
MEAN = np.array([0.44, 0.45, 0.46], dtype=np.float32)
STD = np.array([0.21, 0.21, 0.22], dtype=np.float32)


def make_frames(count, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(CLASSES), size=count)
    frames = rng.integers(90, 150, size=(count, SIZE, SIZE, 3), dtype=np.uint8)
    for frame, label in zip(frames, labels):
        row, column = rng.integers(8, SIZE - 24, size=2)
        if label == 1:
            frame[:, column : column + 3] //= 2
        elif label == 2:
            frame[row : row + 18 : 4, column : column + 18] //= 2
        elif label == 3:
            frame[row : row + 16, column : column + 16] //= 3
    return frames, labels


class Augment:
    def __init__(self, crop):
        self.crop = crop

    def zoom(self, frame, rng):
        side = int(rng.integers(self.crop - 8, SIZE + 1))
        top, left = rng.integers(0, SIZE - side + 1, size=2)
        grid = np.linspace(0, side - 1, self.crop)
        low = grid.astype(np.int64)
        high = np.minimum(low + 1, side - 1)
        part = frame[top : top + side, left : left + side].astype(np.float32)
        weight = (grid - low).astype(np.float32)
        part = part[low] * (1 - weight)[:, None, None] + part[high] * weight[:, None, None]
        return part[:, low] * (1 - weight)[:, None] + part[:, high] * weight[:, None]

    def light(self, frame, rng):
        gain, lift = rng.uniform(0.8, 1.2), rng.uniform(-0.1, 0.1)
        frame = np.clip(frame * np.float32(gain / 255.0) + np.float32(lift), 0.0, 1.0)
        gray = frame.mean(axis=2, keepdims=True)
        return gray + (frame - gray) * np.float32(rng.uniform(0.7, 1.3))

    def sensor(self, frame, rng):
        return frame + np.float32(0.02) * rng.standard_normal(frame.shape, dtype=np.float32)

    def __call__(self, frame, rng):
        frame = self.zoom(frame, rng)
        if rng.random() < 0.5:
            frame = frame[:, ::-1]
        frame = self.sensor(self.light(frame, rng), rng)
        frame = (frame - MEAN) / STD
        return np.ascontiguousarray(frame.transpose(2, 0, 1))


class Dashcam(Dataset):
    def __init__(self, frames, labels, crop, seed):
        self.frames = frames
        self.labels = labels
        self.augment = Augment(crop)
        self.seed = seed
        self.reads = 0

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        self.reads += 1
        rng = np.random.default_rng((self.seed, index, self.reads))
        frame = self.augment(self.frames[index], rng)
        return torch.from_numpy(frame), int(self.labels[index])
