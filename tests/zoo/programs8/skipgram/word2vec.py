"""Skip-gram with negative sampling, in NumPy."""

import argparse
import time

import numpy as np


class Word2Vec:
    def __init__(self, vocabulary, dim=64, lr=0.05, seed=0):
        self.rng = np.random.default_rng(seed)
        self.inner = self.rng.normal(0, 0.1, (vocabulary, dim)).astype(np.float32)
        self.outer = np.zeros((vocabulary, dim), np.float32)
        self.vocabulary, self.lr = vocabulary, lr

    def negatives(self, context, count):
        """Draw words that are not the context word."""
        drawn = np.empty((len(context), count), np.int64)
        for row, word in enumerate(context):
            for column in range(count):
                other = self.rng.integers(self.vocabulary)
                while other == word:
                    other = self.rng.integers(self.vocabulary)
                drawn[row, column] = other
        return drawn

    def negatives_array(self, context, count):
        drawn = self.rng.integers(self.vocabulary - 1, size=(len(context), count))
        return drawn + (drawn >= context[:, None])

    def step(self, center, context, negative):
        target = np.concatenate([context[:, None], negative], axis=1)
        v, u = self.inner[center], self.outer[target]
        score = 1 / (1 + np.exp(-np.einsum("bd,bkd->bk", v, u)))
        loss = -np.log(score[:, 0] + 1e-7).mean() - np.log(1 - score[:, 1:] + 1e-7).sum(1).mean()
        score[:, 0] -= 1
        grad_v = np.einsum("bk,bkd->bd", score, u)
        grad_u = score[..., None] * v[:, None]
        np.add.at(self.inner, center, -self.lr * grad_v)
        np.add.at(self.outer, target.ravel(), -self.lr * grad_u.reshape(-1, v.shape[1]))
        return loss


def corpus(length, vocabulary, seed=1):
    rng = np.random.default_rng(seed)
    words = rng.zipf(1.3, length) % vocabulary
    words[1::2] = (words[::2][: len(words[1::2])] * 7 + 1) % vocabulary
    return words


def pairs(words, size, steps, seed=2):
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        at = rng.integers(5, len(words) - 5, size)
        yield words[at], words[at + rng.choice([-2, -1, 1, 2], size)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sampler", default="negatives", choices=["negatives", "negatives_array"])
    parser.add_argument("--steps", type=int, default=150)
    args = parser.parse_args()
    words = corpus(200_000, 5000)
    model = Word2Vec(5000)
    sample = getattr(model, args.sampler)
    start = time.perf_counter()
    for i, (center, context) in enumerate(pairs(words, 1024, args.steps)):
        loss = model.step(center, context, sample(context, 8))
        if i % 50 == 0:
            print(f"{i}: {loss:.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
