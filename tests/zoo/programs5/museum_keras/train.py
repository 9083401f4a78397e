"""From which century is a coin? Keras on JAX, compiled, validated once an epoch."""

import os
import time

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers


def main():
    keras.utils.set_random_seed(0)
    rng = np.random.default_rng(0)
    century = rng.integers(6, size=4000)
    faces = rng.normal(0, 1, (6, 24, 24, 1))[century] + rng.normal(0, 1, (4000, 24, 24, 1))
    faces = faces.astype("float32")
    model = keras.Sequential(
        [
            layers.Input((24, 24, 1)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(6),
        ]
    )
    model.compile(
        "adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    start = time.perf_counter()
    model.fit(
        faces[:3600],
        century[:3600],
        batch_size=60,
        epochs=4,
        validation_data=(faces[3600:], century[3600:]),
        callbacks=[keras.callbacks.CSVLogger("log.csv")],
        verbose=2,
    )
    print(f"trained 240 steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
