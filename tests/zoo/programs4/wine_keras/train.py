"""Quality of wine from measurements: a tabular network in Keras on torch."""

import argparse
import os
import time

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import torch
from watch import WeightWatch


def bottles(n, n_features=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, (n, n_features)).astype("float32")
    y = np.tanh(x[:, 0] * x[:, 1]) + 0.5 * x[:, 2] ** 2 - x[:, 3] + rng.normal(0, 0.1, n)
    return x, y.astype("float32")[:, None]


def build(n_features):
    inputs = keras.Input((n_features,))
    h = keras.layers.Dense(384, activation="gelu")(inputs)
    for _ in range(3):
        r = keras.layers.LayerNormalization()(h)
        r = keras.layers.Dense(384, activation="gelu")(r)
        h = keras.layers.Add()([h, keras.layers.Dropout(0.1)(r)])
    return keras.Model(inputs, keras.layers.Dense(1)(h))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--watch-every", type=int, default=1)
    parser.add_argument("--bottles", type=int, default=20480)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    keras.utils.set_random_seed(3)
    torch.set_num_threads(1)
    x, y = bottles(args.bottles)
    model = build(x.shape[1])
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="huber")
    start = time.perf_counter()
    history = model.fit(
        x,
        y,
        batch_size=256,
        epochs=args.epochs,
        verbose=2,
        callbacks=[WeightWatch("weights.jsonl", args.watch_every)],
    )
    seconds = time.perf_counter() - start
    print("final loss", history.history["loss"][-1])
    print(f"trained {args.epochs * (args.bottles // 256)} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
