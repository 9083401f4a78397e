"""A multilayer perceptron by hand: forward, backward, Adam."""

import time

import numpy as np


class Layer:
    def __init__(self, rng, a, b):
        self.w = rng.normal(0, np.sqrt(2 / a), (a, b)).astype(np.float32)
        self.b = np.zeros(b, np.float32)

    def forward(self, x, last):
        self.x = x
        self.z = x @ self.w + self.b
        return self.z if last else np.maximum(self.z, 0)

    def backward(self, grad, last):
        if not last:
            grad = grad * (self.z > 0)
        self.grads = [self.x.T @ grad, grad.sum(0)]
        return grad @ self.w.T


class Adam:
    def __init__(self, layers, lr=1e-3):
        self.layers, self.lr, self.t = layers, lr, 0
        self.m = [[np.zeros_like(p) for p in (layer.w, layer.b)] for layer in layers]
        self.v = [[np.zeros_like(p) for p in (layer.w, layer.b)] for layer in layers]

    def step(self):
        self.t += 1
        rate = self.lr * np.sqrt(1 - 0.999**self.t) / (1 - 0.9**self.t)
        for layer, ms, vs in zip(self.layers, self.m, self.v):
            for p, g, m, v in zip((layer.w, layer.b), layer.grads, ms, vs):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                p -= rate * m / (np.sqrt(v) + 1e-8)


def main():
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (8192, 128)).astype(np.float32)
    y = x[:, :10].argmax(1)
    sizes = [128, 384, 384, 10]
    layers = [Layer(rng, a, b) for a, b in zip(sizes, sizes[1:])]
    optimizer = Adam(layers)
    steps, start = 0, time.perf_counter()
    for epoch in range(6):
        order = rng.permutation(len(x))
        for at in range(0, len(x), 512):
            pick = order[at : at + 512]
            h = x[pick]
            for i, layer in enumerate(layers):
                h = layer.forward(h, i == len(layers) - 1)
            p = np.exp(h - h.max(1, keepdims=True))
            p /= p.sum(1, keepdims=True)
            rows = np.arange(len(pick))
            loss = -np.log(p[rows, y[pick]] + 1e-9).mean()
            p[rows, y[pick]] -= 1
            grad = p / len(pick)
            for i in reversed(range(len(layers))):
                grad = layers[i].backward(grad, i == len(layers) - 1)
            optimizer.step()
            steps += 1
        print(f"epoch {epoch} loss {loss:.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
