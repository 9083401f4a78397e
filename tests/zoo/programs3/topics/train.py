"""Softmax regression of topics on counts of words, in NumPy."""

import time

import numpy as np

DOCUMENTS, WORDS, TOPICS, BATCH, EPOCHS = 6000, 1200, 20, 600, 20


def make_documents(rng):
    topic = rng.integers(0, TOPICS, DOCUMENTS)
    likely = rng.gamma(0.3, 1.0, (TOPICS, WORDS))
    counts = rng.poisson(likely[topic] * 0.4).astype(np.float32)
    return np.log1p(counts), topic


def softmax(logits):
    logits = logits - logits.max(1, keepdims=True)
    p = np.exp(logits)
    return p / p.sum(1, keepdims=True)


def main():
    rng = np.random.default_rng(0)
    x, topic = make_documents(rng)
    held_x, held_topic = x[:500], topic[:500]
    x, topic = x[500:], topic[500:]
    hidden = (rng.standard_normal((WORDS, 256)) / 40).astype(np.float32)
    weights = np.zeros((256, TOPICS), np.float32)
    speed_hidden, speed_weights = np.zeros_like(hidden), np.zeros_like(weights)
    wanted = np.eye(TOPICS, dtype=np.float32)[topic]
    rate = 0.3

    steps = 0
    begin = time.perf_counter()
    for epoch in range(EPOCHS):
        order = rng.permutation(len(x))
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            batch = x[rows]
            h = np.tanh(batch @ hidden)
            error = (softmax(h @ weights) - wanted[rows]) / len(rows)
            grad_weights = h.T @ error
            grad_hidden = batch.T @ ((error @ weights.T) * (1 - h * h))
            speed_weights = 0.9 * speed_weights - rate * grad_weights
            speed_hidden = 0.9 * speed_hidden - rate * grad_hidden
            weights += speed_weights
            hidden += speed_hidden
            steps += 1
        if epoch % 5 == 4:
            right = (np.tanh(held_x @ hidden) @ weights).argmax(1) == held_topic
            print(f"epoch {epoch}: accuracy {right.mean():.3f}")
            rate *= 0.7
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
