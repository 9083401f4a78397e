"""Question 21, NumPy: high water from the moon and the wind, by plain gradient descent."""

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

import argparse
import time

import numpy as np


def make(rng, sizes):
    return [
        [rng.normal(0, a**-0.5, (a, b)).astype(np.float32), np.zeros(b, dtype=np.float32)]
        for a, b in zip(sizes, sizes[1:])
    ]


def forward(layers, x):
    outputs = [x]
    for weight, bias in layers[:-1]:
        outputs.append(np.maximum(outputs[-1] @ weight + bias, 0))
    weight, bias = layers[-1]
    outputs.append(outputs[-1] @ weight + bias)
    return outputs


def descend(layers, x, y, rate):
    outputs = forward(layers, x)
    slope = (outputs[-1] - y) * (2 / len(x))
    for number in range(len(layers) - 1, -1, -1):
        weight, bias = layers[number]
        grad = outputs[number].T @ slope
        shift = slope.sum(axis=0)
        if number:
            slope = (slope @ weight.T) * (outputs[number] > 0)
        weight -= rate * grad
        bias -= rate * shift


def error_on(layers, x, y):
    return float(np.mean((forward(layers, x)[-1] - y) ** 2))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--evaluate-every", type=int, default=1)
    args = parser.parse_args()
    rng = np.random.default_rng(21)
    weather = rng.normal(size=(5000, 96)).astype(np.float32)
    water = np.tanh(weather[:, :3]).astype(np.float32)
    x, y, held_x, held_y = weather[:2048], water[:2048], weather[2048:], water[2048:]
    layers = make(rng, [96, 384, 384, 3])
    history = []
    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        rows = rng.integers(0, len(x), 384)
        descend(layers, x[rows], y[rows], 0.01)
        if step % args.evaluate_every == 0:
            history.append(error_on(layers, held_x, held_y))
    seconds = time.perf_counter() - start
    print(f"error on the rest: {history[-1] if history else float('nan'):.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
