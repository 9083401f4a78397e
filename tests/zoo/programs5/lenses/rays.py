import numpy as np


def trace(n, seed=0):
    """Rays through a thick lens: where they enter and how, and where they leave."""
    rng = np.random.default_rng(seed)
    rays = rng.uniform(-1, 1, (n, 6))
    height, angle, curve = rays[:, 0], 0.3 * rays[:, 1], 0.5 + 0.4 * rays[:, 2]
    inside = angle - height * curve / 1.5
    out = height + 0.4 * inside
    leaving = inside * 1.5 - out * curve + 0.05 * np.sin(4 * rays[:, 3])
    return rays, np.stack([out, leaving, out * leaving], 1)
