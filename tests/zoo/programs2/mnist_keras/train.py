import argparse
import os
import time

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
from keras import layers

parser = argparse.ArgumentParser()
parser.add_argument("--save-freq", default="3", help="batches between checkpoints, or 'epoch'")
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
y_train = rng.integers(0, 10, 12_800)
prototypes = rng.random((10, 28, 28, 1), dtype=np.float32)
x_train = prototypes[y_train] + 0.5 * rng.standard_normal((12_800, 28, 28, 1), dtype=np.float32)

model = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        layers.Flatten(),
        layers.Dense(512, activation="relu"),
        layers.Dropout(0.3),
        layers.Dense(512, activation="relu"),
        layers.Dense(10),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
save_freq = args.save_freq if args.save_freq == "epoch" else int(args.save_freq)
checkpoint = keras.callbacks.ModelCheckpoint("model.keras", save_freq=save_freq)

started = time.perf_counter()
model.fit(x_train, y_train, batch_size=128, epochs=args.epochs, verbose=2, callbacks=[checkpoint])
took = time.perf_counter() - started
print(f"trained {int(model.optimizer.iterations)} steps in {took:.3f} s")
