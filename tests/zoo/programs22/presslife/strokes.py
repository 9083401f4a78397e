"""Accelerations of a stamping press, a window per stroke, and the wear of its die."""

import numpy as np
import torch
from torch.utils.data import TensorDataset

SAMPLES = 512
AXES = 3


def simulate_strokes(count, seed):
    rng = np.random.default_rng(seed)
    time = np.linspace(0.0, 1.0, SAMPLES)
    wear = rng.uniform(0.0, 1.0, size=count)
    strokes = np.empty((count, AXES, SAMPLES))
    for axis in range(AXES):
        ring = np.sin(2 * np.pi * (20 + 10 * axis) * time) * np.exp(-4 * time)
        chatter = np.sin(2 * np.pi * 90 * time) * wear[:, None]
        strokes[:, axis] = ring + chatter + rng.normal(0, 0.2, size=(count, SAMPLES))
    return strokes, wear


def standardise(strokes):
    mean = strokes.mean(axis=(0, 2), keepdims=True)
    return (strokes - mean) / strokes.std(axis=(0, 2), keepdims=True)


def load_strokes(count, seed, precision=None):
    strokes, wear = simulate_strokes(count, seed)
    strokes = standardise(strokes)
    if precision is not None:
        strokes, wear = strokes.astype(precision), wear.astype(precision)
    return TensorDataset(torch.from_numpy(strokes), torch.from_numpy(wear))
