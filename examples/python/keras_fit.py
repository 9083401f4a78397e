"""A small Keras 3 training; the backend is torch unless KERAS_BACKEND says otherwise.

stepwatch run examples/python/keras_fit.py              # unchanged
python examples/python/keras_fit.py --callback          # with stepwatch.keras.Callback
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy
import stepwatch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--callback", action="store_true", help="record with the callback")
    options = parser.parse_args()
    random = numpy.random.default_rng(0)
    images, labels = random.normal(size=(640, 28, 28, 1)), random.integers(0, 10, 640)
    model = keras.Sequential(
        [
            keras.layers.Input((28, 28, 1)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(10),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss=loss, metrics=["accuracy"])
    callback = stepwatch.keras.Callback(name="keras") if options.callback else None
    callbacks = [callback] if callback else []
    model.fit(images, labels, batch_size=16, epochs=2, verbose=2, callbacks=callbacks)
    if callback and callback.run:
        print(callback.run.report())


if __name__ == "__main__":
    main()
