import os

os.environ["KERAS_BACKEND"] = "torch"

import argparse
import json
import time

import numpy as np
import torch

torch.set_num_threads(1)

import keras
from keras import layers

PATTERNS = 10


def make_tiles(count, seed):
    rng = np.random.default_rng(seed)
    motifs = np.random.default_rng(77).random((PATTERNS, 12, 12, 3))
    labels = rng.integers(0, PATTERNS, count)
    tiles = np.concatenate([motifs[labels], motifs[labels][:, ::-1]], 1)
    tiles = np.concatenate([tiles, tiles[:, :, ::-1]], 2)
    return (tiles + rng.normal(0, 0.3, tiles.shape)).astype("float32"), labels


def build():
    return keras.Sequential(
        [
            keras.Input((24, 24, 3)),
            layers.Conv2D(24, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(48, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(160, activation="relu"),
            layers.Dense(PATTERNS),
        ]
    )


class WeightRecord(keras.callbacks.Callback):
    """Keeps a record of how the weights move, a line of JSON at a time."""

    def __init__(self, path, every):
        super().__init__()
        self.file, self.every, self.seen = open(path, "w"), every, 0

    def on_train_batch_end(self, batch, logs=None):
        self.seen += 1
        if self.seen % self.every:
            return
        record = {"batch": self.seen, "loss": float((logs or {}).get("loss", 0.0))}
        for variable in self.model.trainable_variables:
            values = keras.ops.convert_to_numpy(variable)
            counts, edges = np.histogram(values, 40)
            record[variable.path] = {
                "mean": float(values.mean()),
                "std": float(values.std()),
                "p05": float(np.percentile(values, 5)),
                "p95": float(np.percentile(values, 95)),
                "counts": counts.tolist(),
                "edges": edges.tolist(),
            }
        self.file.write(json.dumps(record) + "\n")
        self.file.flush()

    def on_train_end(self, logs=None):
        self.file.close()


class Count(keras.callbacks.Callback):
    batches = 0

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--record-every", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    keras.utils.set_random_seed(9)
    x, y = make_tiles(1600, 9)
    held_x, held_y = make_tiles(96, 10)
    model = build()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    count = Count()
    record = WeightRecord("weights.jsonl", args.record_every)
    start = time.perf_counter()
    model.fit(
        x,
        y,
        batch_size=32,
        epochs=args.epochs,
        validation_data=(held_x, held_y),
        callbacks=[record, count],
        verbose=2,
    )
    seconds = time.perf_counter() - start
    model.save_weights("azulejos.weights.h5")
    print(f"trained {count.batches} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
