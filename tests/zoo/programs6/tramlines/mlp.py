import numpy as np


class Dense:
    def __init__(self, inputs, outputs, rng):
        self.w = rng.standard_normal((inputs, outputs), dtype=np.float32) * (2 / inputs) ** 0.5
        self.b = np.zeros(outputs, dtype=np.float32)

    def forward(self, x):
        self.x = x
        return x @ self.w + self.b

    def backward(self, grad, lr):
        back = grad @ self.w.T
        self.w -= lr * (self.x.T @ grad)
        self.b -= lr * grad.sum(0)
        return back


class Relu:
    def forward(self, x):
        self.mask = x > 0
        return x * self.mask

    def backward(self, grad, lr):
        return grad * self.mask


class Network:
    def __init__(self, sizes, seed=0):
        rng = np.random.default_rng(seed)
        self.layers = []
        for m, n in zip(sizes[:-1], sizes[1:]):
            self.layers += [Dense(m, n, rng), Relu()]
        self.layers.pop()

    def train_batch(self, x, y, lr):
        out = x
        for layer in self.layers:
            out = layer.forward(out)
        error = out - y
        grad = (2 / error.size) * error
        for layer in reversed(self.layers):
            grad = layer.backward(grad, lr)
        return float((error * error).mean())
