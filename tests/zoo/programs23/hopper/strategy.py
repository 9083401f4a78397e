import numpy as np
from world import ACTION, OBSERVATION


class Strategy:
    """Evolution strategies with mirrored noise; every copy of the world has its own policy."""

    def __init__(self, pairs, hidden, sigma, lr, seed):
        self.rng = np.random.default_rng(seed)
        self.pairs, self.sigma, self.lr = pairs, np.float32(sigma), np.float32(lr)
        self.shapes = [(OBSERVATION, hidden), (hidden, ACTION)]
        self.theta = [
            self.rng.standard_normal(s, dtype=np.float32) / np.float32(s[0] ** 0.5)
            for s in self.shapes
        ]

    def ask(self):
        self.noise = [
            self.rng.standard_normal((self.pairs, *s), dtype=np.float32) for s in self.shapes
        ]
        return [
            np.concatenate([t + self.sigma * n, t - self.sigma * n])
            for t, n in zip(self.theta, self.noise)
        ]

    def tell(self, fitness):
        ranks = np.argsort(np.argsort(fitness)).astype(np.float32) / (len(fitness) - 1) - 0.5
        weight = (ranks[: self.pairs] - ranks[self.pairs :]) / (self.pairs * self.sigma)
        for theta, noise in zip(self.theta, self.noise):
            theta += self.lr * np.tensordot(weight.astype(np.float32), noise, axes=1)


def act(weights, observations):
    hidden = np.tanh(np.matmul(observations[:, None, :], weights[0]))
    return np.matmul(hidden, weights[1])[:, 0]
