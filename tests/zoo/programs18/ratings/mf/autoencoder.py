from dataclasses import dataclass, field

import numpy as np


@dataclass
class Autoencoder:
    items: int
    hidden: int
    dtype: str
    rate: float = 1e-4
    momentum: float = 0.9
    weights: dict = field(default_factory=dict)
    speed: dict = field(default_factory=dict)

    def __post_init__(self):
        rng = np.random.default_rng(0)
        shapes = {"encode": (self.items, self.hidden), "decode": (self.hidden, self.items)}
        for name, shape in shapes.items():
            self.weights[name] = (rng.standard_normal(shape) * 0.02).astype(self.dtype)
            self.speed[name] = np.zeros(shape, self.dtype)

    def step(self, ratings):
        hidden = np.tanh(ratings @ self.weights["encode"])
        guess = hidden @ self.weights["decode"]
        error = guess - ratings
        error[ratings == 0] = 0
        back = (error @ self.weights["decode"].T) * (1 - hidden * hidden)
        self.move("decode", hidden.T @ error)
        self.move("encode", ratings.T @ back)
        return np.square(error).sum() / max(1, np.count_nonzero(ratings))

    def move(self, name, gradient):
        gradient *= self.rate
        speed = self.speed[name]
        speed *= self.momentum
        speed -= gradient
        self.weights[name] += speed
