"""Learn a forward model, weighting the states by how seldom they were seen."""

import sys
import time

import numpy as np
from model import ForwardModel

STATE, ACTION, BATCH, STEPS = 24, 4, 1024, 250


class Counts:
    """How often each state was seen, states being the same if equal to one decimal."""

    def __init__(self):
        self.seen = {}

    def key(self, state):
        text = ""
        for value in state:
            text += f"{value:+.1f},"
        return text

    def bonus(self, states):
        weights = np.empty(len(states), np.float32)
        for index, state in enumerate(states):
            key = self.key(state)
            self.seen[key] = self.seen.get(key, 0) + 1
            weights[index] = 1 / np.sqrt(self.seen[key])
        return weights


class HashedCounts:
    def __init__(self, bits=20):
        self.table = np.zeros(1 << bits, np.int32)
        self.factors = np.random.default_rng(9).integers(1, 1 << 40, STATE) | 1

    def bonus(self, states):
        cells = np.rint(states * 10).astype(np.int64)
        slots = (cells @ self.factors) % len(self.table)
        np.add.at(self.table, slots, 1)
        return (1 / np.sqrt(self.table[slots])).astype(np.float32)


def main():
    rng = np.random.default_rng(0)
    places = rng.normal(size=(400, STATE)).astype(np.float32)
    effect = rng.normal(0, 0.3, (ACTION, STATE)).astype(np.float32)
    counts = HashedCounts() if "--hashed" in sys.argv[1:] else Counts()
    model = ForwardModel([STATE + ACTION, 512, 512, STATE], lr=0.01, rng=rng)

    begin = time.perf_counter()
    for step in range(STEPS):
        state = places[rng.integers(0, len(places), BATCH)]
        action = np.eye(ACTION, dtype=np.float32)[rng.integers(0, ACTION, BATCH)]
        target = np.tanh(state + action @ effect)

        weights = counts.bonus(state)
        layers = model.forward(np.concatenate([state, action], axis=1))
        error = (layers[-1] - target) * weights[:, None]
        model.update(model.backward(layers, error / BATCH))
        if step % 50 == 0:
            print(f"step {step} error {np.square(error).mean():.5f}")
    print(f"trained {STEPS} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
