"""Rain on terraces, with a journal of the training."""

import argparse
import json
import os
import time

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax


def init(key, sizes):
    layers = []
    for rows, columns in zip(sizes[:-1], sizes[1:], strict=True):
        key, part = jax.random.split(key)
        layers.append(
            {"w": jax.random.normal(part, (rows, columns)) / rows**0.5, "b": jnp.zeros(columns)}
        )
    return layers


def loss_of(layers, x, y):
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return jnp.mean((x @ layers[-1]["w"] + layers[-1]["b"] - y) ** 2)


optimizer = optax.adam(1e-3)


@jax.jit
def update(layers, state, x, y):
    loss, grads = jax.value_and_grad(loss_of)(layers, x, y)
    changes, state = optimizer.update(grads, state)
    return optax.apply_updates(layers, changes), state, loss, grads


class Journal:
    def __init__(self, path):
        self.file = open(path, "w")

    def describe(self, values):
        values = np.asarray(values).ravel()
        counts, edges = np.histogram(values, bins=64)
        quarters = np.percentile(values, [5, 25, 50, 75, 95])
        return {"counts": counts.tolist(), "edges": edges.tolist(), "quarters": quarters.tolist()}

    def write(self, step, loss, layers, grads):
        line = {"step": step, "loss": float(loss), "layers": [], "grads": []}
        for layer, grad in zip(layers, grads, strict=True):
            line["layers"].append(self.describe(layer["w"]))
            line["grads"].append(self.describe(grad["w"]))
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal-every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=90)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    rain = rng.standard_normal((8, 1536, 256), dtype=np.float32)
    flow = rain[..., :4].mean(axis=-1, keepdims=True)
    layers = init(jax.random.key(0), [256, 256, 256, 256, 256, 1])
    state = optimizer.init(layers)
    journal = Journal("journal.jsonl")

    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        part = step % 8
        layers, state, loss, grads = update(layers, state, rain[part], flow[part])
        if step % args.journal_every == 0:
            journal.write(step, loss, layers, grads)
    loss.block_until_ready()
    seconds = time.perf_counter() - start
    print(f"loss {float(loss):.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
