"""Made-up recordings of neurons that fire with the movement of a hand, which is to be decoded."""

from __future__ import annotations

import numpy as np


def recordings(trials, steps=50, neurons=32, seed=0):
    """Return spike counts (trials, steps, neurons) and velocities (trials, steps, 2)."""
    rng = np.random.default_rng(seed)
    # Which way each neuron prefers is the same in every set.
    tuning = np.random.default_rng(7)
    angle = tuning.uniform(0, 2 * np.pi, neurons)
    directions = np.stack([np.cos(angle), np.sin(angle)])
    velocity = np.zeros((trials, steps, 2))
    for t in range(1, steps):
        velocity[:, t] = 0.9 * velocity[:, t - 1] + 0.4 * rng.normal(size=(trials, 2))
    rates = np.exp(0.6 * velocity @ directions - 0.5)
    spikes = rng.poisson(rates)
    return spikes.astype(np.float32), velocity.astype(np.float32)


class Batches:
    """A loader: batches of all trials in another order each time."""

    def __init__(self, inputs, targets, size=32, seed=0):
        self.inputs, self.targets, self.batch_size = inputs, targets, size
        self.rng = np.random.default_rng(seed)

    def __len__(self):
        return len(self.inputs) // self.batch_size

    def __iter__(self):
        order = self.rng.permutation(len(self.inputs))
        for number in range(len(self)):
            chosen = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield self.inputs[chosen], self.targets[chosen]


def r2(predicted, true):
    """Return how much of the movement is explained: 1 is all of it."""
    predicted, true = np.asarray(predicted), np.asarray(true)
    rest = ((true - predicted) ** 2).sum(axis=(0, 1))
    spread = ((true - true.mean(axis=(0, 1))) ** 2).sum(axis=(0, 1))
    return float(np.mean(1 - rest / spread))
