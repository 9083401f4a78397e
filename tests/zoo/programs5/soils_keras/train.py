"""Soil from near-infrared spectra, with Keras."""

import argparse
import os
import time

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers


def spectra(n, bands=512, seed=0):
    rng = np.random.default_rng(seed)
    carbon, clay = rng.random((2, n, 1))
    x = np.linspace(0, 1, bands)
    signal = carbon * np.exp(-((x - 0.3) ** 2) / 0.01) + clay * np.exp(-((x - 0.7) ** 2) / 0.02)
    signal = signal + rng.normal(0, 0.05, signal.shape)
    return signal.astype("float32"), np.hstack([carbon, clay]).astype("float32")


def build(bands):
    return keras.Sequential(
        [
            layers.Input((bands,)),
            layers.Dense(768, activation="gelu"),
            layers.LayerNormalization(),
            layers.Dense(768, activation="gelu"),
            layers.Dense(2),
        ]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-freq", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()
    keras.utils.set_random_seed(0)
    torch.set_num_threads(1)
    x, y = spectra(4800)
    model = build(x.shape[1])
    model.compile(keras.optimizers.Adam(1e-3), loss="mse")
    keep = keras.callbacks.ModelCheckpoint("soil.keras", save_freq=args.save_freq or "epoch")
    start = time.perf_counter()
    history = model.fit(x, y, batch_size=64, epochs=args.epochs, callbacks=[keep], verbose=2)
    seconds = time.perf_counter() - start
    print(f"loss {history.history['loss'][-1]:.4f}")
    print(f"trained {args.epochs * (len(x) // 64)} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
