import json

import keras
import numpy as np


class WeightWatch(keras.callbacks.Callback):
    """Statistics of every weight, a line of JSON each time; read by our dashboard."""

    QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

    def __init__(self, path, every):
        super().__init__()
        self.path, self.every = path, every

    def on_train_begin(self, logs=None):
        self.file = open(self.path, "w")
        self.seen = 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen % self.every:
            return
        record = {"batch": self.seen, "loss": float(logs["loss"])}
        for weight in self.model.weights:
            values = keras.ops.convert_to_numpy(weight).ravel()
            counts, edges = np.histogram(values, bins=40)
            record[weight.path] = {
                "quantiles": np.quantile(values, self.QUANTILES).tolist(),
                "norm": float(np.linalg.norm(values)),
                "counts": counts.tolist(),
                "edges": edges.tolist(),
            }
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def on_train_end(self, logs=None):
        self.file.close()
