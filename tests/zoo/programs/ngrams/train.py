"""Language identification from letter pairs: logistic regression in NumPy."""

import argparse
import os
import random
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np  # noqa: E402

LETTERS = "abcdefghijklmnopqrstuvwxyz "
PAIRS = len(LETTERS) ** 2


def make_texts(count, languages=6, length=240):
    rng = random.Random(0)
    weights = [[rng.random() ** 3 for _ in LETTERS] for _ in range(languages)]
    labels = [rng.randrange(languages) for _ in range(count)]
    return ["".join(rng.choices(LETTERS, weights[n], k=length)) for n in labels], labels


class PairFeatures:
    def __init__(self):
        self.index = {a + b: n for n, (a, b) in enumerate((a, b) for a in LETTERS for b in LETTERS)}

    def count(self, text):
        counts = np.zeros(PAIRS, np.float32)
        for position in range(len(text) - 1):
            counts[self.index[text[position : position + 2]]] += 1
        return counts

    def __call__(self, texts):
        return np.stack([self.count(text) for text in texts])


class FastPairFeatures:
    def __call__(self, texts):
        table = np.zeros(128, np.int64)
        table[[ord(letter) for letter in LETTERS]] = np.arange(len(LETTERS))
        codes = table[np.frombuffer("".join(texts).encode(), np.uint8).reshape(len(texts), -1)]
        pairs = codes[:, :-1] * len(LETTERS) + codes[:, 1:]
        rows = np.arange(len(texts))[:, None] * PAIRS
        return (
            np.bincount((rows + pairs).ravel(), minlength=len(texts) * PAIRS)
            .reshape(len(texts), PAIRS)
            .astype(np.float32)
        )


class Classifier:
    def __init__(self, inputs, hidden, classes, rng):
        self.w1 = (rng.normal(size=(inputs, hidden)) / inputs**0.5).astype(np.float32)
        self.w2 = (rng.normal(size=(hidden, classes)) / hidden**0.5).astype(np.float32)

    def update(self, x, y, lr=0.05):
        h = np.tanh(x @ self.w1)
        z = h @ self.w2
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss = -np.log(p[np.arange(len(y)), y] + 1e-9).mean()
        p[np.arange(len(y)), y] -= 1
        p /= len(y)
        back = (p @ self.w2.T) * (1 - h**2)
        self.w2 -= lr * (h.T @ p)
        self.w1 -= lr * (x.T @ back)
        return loss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast-features", action="store_true")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    texts, labels = make_texts(8960)
    labels = np.array(labels)
    features = FastPairFeatures() if args.fast_features else PairFeatures()
    model = Classifier(PAIRS, 1024, 6, rng)
    steps = 0
    start = time.perf_counter()
    for epoch in range(8):
        order = rng.permutation(len(texts))
        for begin in range(0, len(texts), 256):
            chosen = order[begin : begin + 256]
            x = features([texts[n] for n in chosen])
            loss = model.update(x, labels[chosen])
            steps += 1
        print(f"epoch {epoch}: loss {loss:.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
