"""How ripe is the cheese? Gas sensors over time, with Keras on JAX."""

import argparse
import os
import time

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers


def cellar(n, hours=48, sensors=6, seed=0):
    rng = np.random.default_rng(seed)
    ripe = rng.random(n)
    t = np.arange(hours)[None, :, None]
    gas = ripe[:, None, None] * np.sin(t / (4 + np.arange(sensors))) + rng.normal(
        0, 0.3, (n, hours, sensors)
    )
    return gas.astype("float32"), ripe.astype("float32")


def build(hours, sensors):
    inputs = x = layers.Input((hours, sensors))
    for width in (32, 32, 48):
        x = layers.Conv1D(width, 5, padding="same", activation="gelu")(x)
        x = layers.LayerNormalization()(x)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(64, activation="gelu")(x)
    return keras.Model(inputs, layers.Dense(1)(x))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    keras.utils.set_random_seed(0)
    x, y = cellar(960)
    model = build(*x.shape[1:])
    model.compile(keras.optimizers.Adam(1e-3), loss="mse", run_eagerly=not args.compiled)
    start = time.perf_counter()
    model.fit(x, y, batch_size=32, epochs=args.epochs, verbose=2)
    seconds = time.perf_counter() - start
    print(f"trained {args.epochs * (len(x) // 32)} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
