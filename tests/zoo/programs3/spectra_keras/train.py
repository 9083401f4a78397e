"""Classify spectra with a small one-dimensional network in Keras."""

import os
import time

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
from keras import layers

torch.set_num_threads(1)
keras.utils.set_random_seed(0)

rng = np.random.default_rng(0)
label = rng.integers(0, 6, 2400)
axis = np.linspace(0, 1, 160, dtype=np.float32)
center = np.linspace(0.1, 0.9, 6)[label][:, None]
lines = np.exp(-((axis - center) ** 2) / 0.002) + 0.5 * np.exp(-((axis - 0.5) ** 2) / 0.01)
spectra = (lines + 0.3 * rng.standard_normal(lines.shape)).astype(np.float32)[..., None]

model = keras.Sequential(
    [
        keras.Input((160, 1)),
        layers.Conv1D(32, 7, activation="relu"),
        layers.Conv1D(48, 5, activation="relu"),
        layers.MaxPooling1D(2),
        layers.Conv1D(64, 5, activation="relu"),
        layers.GlobalAveragePooling1D(),
        layers.Dense(64, activation="relu"),
        layers.Dense(6, activation="softmax"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
callbacks = [
    keras.callbacks.ReduceLROnPlateau(patience=2),
    keras.callbacks.ModelCheckpoint("best.keras", save_best_only=True),
]
begin = time.perf_counter()
model.fit(
    spectra,
    label,
    batch_size=64,
    epochs=5,
    validation_split=0.1,
    verbose=2,
    callbacks=callbacks,
)
took = time.perf_counter() - begin
print(f"trained {int(model.optimizer.iterations)} steps in {took:.3f} s")
