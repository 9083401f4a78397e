"""A small network that learns to tell two classes apart, profiled in four ways.

    python examples/ml_training_example.py [--epochs N] [--no-torch]

The profiles are in ``ml_profiling_output``. With torch the network is of torch; without, one in
plain Python does the same, slower and smaller.
"""

from __future__ import annotations

import argparse
import math
import random

from stepwatch.compat.omni import (
    auto_profile_blocks,
    profile_line_by_line,
    profile_methods,
    profiler,
    profiler_config,
)

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

profiler_config.enabled = True
profiler_config.output_dir = "ml_profiling_output"
profiler_config.save_format = "json"
profiler_config.steps_to_save = [1, 10, 50, 100]
profiler_config.print_block_profile = True
profiler_config.save_line_profile = True
profiler_config.save_block_profile = True
profiler_config.save_overall_profile = True

BATCH = 32


@auto_profile_blocks
def generate_data(num_samples=1000, input_dim=10):
    """Return points, and whether the sum of their coordinates is above 0."""
    points = [[random.gauss(0, 1) for _ in range(input_dim)] for _ in range(num_samples)]
    return points, [1.0 if sum(point) > 0 else 0.0 for point in points]


class TorchNetwork:
    """Two layers, of torch."""

    def __init__(self, input_dim=10, hidden=64):
        layers = torch.nn
        self.model = layers.Sequential(
            layers.Linear(input_dim, hidden),
            layers.ReLU(),
            layers.Linear(hidden, 1),
            layers.Sigmoid(),
        )
        self.criterion = layers.BCELoss()
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def loss(self, points, labels):
        """Return the loss, without learning."""
        with torch.no_grad():
            return self._loss(points, labels).item()

    def learn(self, points, labels):
        """Take one step of the optimizer and return the loss before it."""
        self.optimizer.zero_grad()
        loss = self._loss(points, labels)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _loss(self, points, labels):
        outputs = self.model(torch.tensor(points)).squeeze(1)
        return self.criterion(outputs, torch.tensor(labels))


class PlainNetwork:
    """Two layers, in plain Python, with plain gradient descent."""

    def __init__(self, input_dim=10, hidden=16, rate=0.1):
        scale = 1 / math.sqrt(input_dim)
        self.inner = [
            [random.uniform(-scale, scale) for _ in range(input_dim)] for _ in range(hidden)
        ]
        self.outer = [random.uniform(-0.25, 0.25) for _ in range(hidden)]
        self.rate = rate

    def loss(self, points, labels):
        """Return the loss, without learning."""
        return sum(self._one(*pair)[2] for pair in zip(points, labels)) / len(points)

    def learn(self, points, labels):
        """Take one step down the gradient and return the loss before it."""
        total = 0.0
        inner = [[0.0] * len(row) for row in self.inner]
        outer = [0.0] * len(self.outer)
        for point, label in zip(points, labels):
            hidden, output, loss = self._one(point, label)
            total += loss
            for unit, value in enumerate(hidden):
                outer[unit] += (output - label) * value
                if value > 0:
                    slope = (output - label) * self.outer[unit]
                    inner[unit] = [sum_ + slope * x for sum_, x in zip(inner[unit], point)]
        step = self.rate / len(points)
        self.outer = [weight - step * slope for weight, slope in zip(self.outer, outer)]
        for row, slopes in zip(self.inner, inner):
            row[:] = [weight - step * slope for weight, slope in zip(row, slopes)]
        return total / len(points)

    def _one(self, point, label):
        hidden = [max(0.0, sum(w * x for w, x in zip(row, point))) for row in self.inner]
        output = 1 / (1 + math.exp(-sum(w * h for w, h in zip(self.outer, hidden))))
        output = min(max(output, 1e-7), 1 - 1e-7)
        loss = -(label * math.log(output) + (1 - label) * math.log(1 - output))
        return hidden, output, loss


@profile_methods
class Trainer:
    """Trains and validates a network."""

    def __init__(self, network, train_data, val_data):
        self.network = network
        self.train_data = train_data
        self.val_data = val_data

    @auto_profile_blocks
    def train_epoch(self, epoch):
        """Go through the training data once."""
        points, labels = self.train_data
        losses = []
        for batch, start in enumerate(range(0, len(points), BATCH)):
            with profiler.profile_context("train_step"):
                end = start + BATCH
                losses.append(self.network.learn(points[start:end], labels[start:end]))
            if batch % 10 == 0:
                print(f"Epoch {epoch}, Batch {batch}, Loss: {losses[-1]:.4f}")
        return sum(losses) / len(losses)

    @auto_profile_blocks
    def validate(self):
        """Return the loss on data that was not learnt from."""
        return self.network.loss(*self.val_data)

    @profile_line_by_line
    def train(self, num_epochs):
        """Train for some epochs."""
        for epoch in range(num_epochs):
            with profiler.profile_context(f"epoch_{epoch}"):
                train_loss = self.train_epoch(epoch)
                val_loss = self.validate()
            print(f"Epoch {epoch}: Train Loss: {train_loss:.4f}, Val Loss: {val_loss:.4f}")


def main():
    """Generate data, train, and leave the rest to the profiler."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5, help="how many (default: 5)")
    parser.add_argument("--no-torch", action="store_true", help="take the network in plain Python")
    arguments = parser.parse_args()
    random.seed(0)
    network = PlainNetwork() if torch is None or arguments.no_torch else TorchNetwork()
    trainer = Trainer(network, generate_data(1000, 10), generate_data(num_samples=200))
    trainer.train(arguments.epochs)


if __name__ == "__main__":
    main()
