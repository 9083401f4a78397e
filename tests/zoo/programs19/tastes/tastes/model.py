import numpy as np


class Factors:
    """An autoencoder of rating rows: dishes in, dishes out."""

    def __init__(self, dishes, hidden, seed):
        rng = np.random.default_rng(seed)
        self.enc = rng.normal(0, 0.05, (dishes, hidden)).astype(np.float32)
        self.dec = rng.normal(0, 0.05, (hidden, dishes)).astype(np.float32)

    def fit_batch(self, rows, rate):
        hidden = np.tanh(rows @ self.enc)
        error = (hidden @ self.dec - rows) * (rows != 0)
        back = (error @ self.dec.T) * (1 - hidden * hidden)
        self.dec -= rate * (hidden.T @ error) / len(rows)
        self.enc -= rate * (rows.T @ back) / len(rows)
        return error
