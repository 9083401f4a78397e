import logging

import numpy as np


class Journal:
    """Writes how well each dish is predicted."""

    def __init__(self, path, every):
        self.every = every
        self.logger = logging.getLogger("tastes")
        self.logger.setLevel(logging.INFO)
        self.logger.propagate = False
        handler = logging.FileHandler(path)
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        self.logger.addHandler(handler)

    def write(self, step, error):
        if step % self.every:
            return
        for dish, value in enumerate(np.sqrt((error**2).mean(axis=0))):
            self.logger.info("step %d dish %d rmse %.5f", step, dish, value)
