"""Use of energy of buildings, hour by hour: Keras on JAX."""

import argparse
import os
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np
from keras import layers


def buildings(n, hours=48, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(hours + 1)
    phase = rng.uniform(0, 24, (n, 1))
    use = np.sin(2 * np.pi * (t + phase) / 24) + 0.3 * rng.normal(size=(n, hours + 1))
    weather = np.cumsum(rng.normal(0, 0.1, (n, hours, 3)), 1)
    x = np.concatenate([use[:, :-1, None], weather], 2).astype("float32")
    return x, (use[:, -1:] + 0.2 * weather[:, -1, :1]).astype("float32")


def residual(x, filters, dilation):
    h = layers.Conv1D(filters, 3, padding="causal", dilation_rate=dilation, activation="relu")(x)
    h = layers.Conv1D(filters, 3, padding="causal", dilation_rate=dilation)(h)
    return layers.Activation("relu")(layers.Add()([x, h]))


def build(hours):
    inputs = keras.Input((hours, 4))
    h = layers.Conv1D(48, 1)(inputs)
    for dilation in (1, 2, 4, 8):
        h = residual(h, 48, dilation)
    h = layers.GlobalAveragePooling1D()(h)
    return keras.Model(inputs, layers.Dense(1)(h))


class Clock(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        self.steps = 0
        self.start = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1

    def on_train_end(self, logs=None):
        self.seconds = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--buildings", type=int, default=6400)
    args = parser.parse_args()
    keras.utils.set_random_seed(1)
    x, y = buildings(args.buildings)
    model = build(x.shape[1])
    model.compile(keras.optimizers.AdamW(1e-3), "mse", metrics=["mae"])
    clock = Clock()
    model.fit(x, y, batch_size=128, epochs=args.epochs, callbacks=[clock], verbose=2)
    print(f"trained {clock.steps} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
