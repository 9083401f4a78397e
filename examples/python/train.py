"""Train a small network on two spirals, in plain Python.

    stepwatch run examples/python/train.py --epochs 3

Sections say what belongs to which phase of a step; without them the program is recorded, too, and
the sampler still knows where its time goes. One thing here is slower than it should be: which?
"""

from __future__ import annotations

import argparse
import math
import random

import stepwatch

HIDDEN = 12
RATE = 0.3
Sample = tuple[list[float], float]


def spirals(count: int) -> list[Sample]:
    """Return points on two spirals, and on which one each is."""
    samples: list[Sample] = []
    for i in range(count):
        side, turn = i % 2, 3.0 * i / count
        angle = turn * math.pi + side * math.pi
        samples.append(([turn / 3 * math.cos(angle), turn / 3 * math.sin(angle)], float(side)))
    return samples


def augment(batch: list[Sample], noise: random.Random) -> list[Sample]:
    """Move every point a little."""
    moved: list[Sample] = []
    for point, label in batch:
        shifts = [noise.gauss(0, 0.02) for _ in range(200)]  # two would do
        moved.append(([point[0] + shifts[0], point[1] + shifts[1]], label))
    return moved


class Network:
    """Two inputs, one hidden layer, one output."""

    def __init__(self, seed: random.Random) -> None:
        self.inner = [[seed.uniform(-2, 2) for _ in range(3)] for _ in range(HIDDEN)]
        self.outer = [seed.uniform(-1, 1) for _ in range(HIDDEN + 1)]

    def forward(self, point: list[float]) -> tuple[list[float], float]:
        x, y = point
        hidden = [math.tanh(w[0] * x + w[1] * y + w[2]) for w in self.inner]
        total = sum(w * h for w, h in zip(self.outer, hidden)) + self.outer[-1]
        return hidden, 1 / (1 + math.exp(-total))

    def backward(self, point: list[float], hidden: list[float], error: float) -> list[list[float]]:
        """Return the gradients of one sample, the outer layer's last."""
        slopes = [error * w * (1 - h * h) for w, h in zip(self.outer, hidden)]
        inner = [[slope * point[0], slope * point[1], slope] for slope in slopes]
        return [*inner, [error * h for h in [*hidden, 1.0]]]

    def update(self, gradients: list[list[float]], rate: float) -> None:
        for weights, gradient in zip([*self.inner, self.outer], gradients):
            for i, slope in enumerate(gradient):
                weights[i] -= rate * slope


def train_step(network: Network, batch: list[Sample]) -> float:
    """Improve the network by one batch; return its mean loss."""
    loss = 0.0
    for point, label in batch:
        with stepwatch.section("forward"):
            hidden, output = network.forward(point)
            loss -= math.log(max(output if label else 1 - output, 1e-9))
        with stepwatch.section("backward"):
            gradients = network.backward(point, hidden, output - label)
        with stepwatch.section("optimizer"):
            network.update(gradients, RATE)
    return loss / len(batch)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()

    source = random.Random(7)
    samples, network = spirals(480), Network(source)
    for epoch in range(options.epochs):
        source.shuffle(samples)
        losses = []
        for begin in range(0, len(samples), options.batch):
            stepwatch.step_begin()
            with stepwatch.section("data"):
                batch = augment(samples[begin : begin + options.batch], source)
            losses.append(train_step(network, batch))
            stepwatch.counter("loss", losses[-1])
            stepwatch.step_end()
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}")


if __name__ == "__main__":
    main()
