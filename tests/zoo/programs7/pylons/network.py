"""A dense network in NumPy, with momentum."""

import numpy as np


class Dense:
    def __init__(self, rng, inputs, outputs):
        self.w = (rng.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)
        self.vw, self.vb = np.zeros_like(self.w), np.zeros_like(self.b)

    def forward(self, x):
        self.x = x
        return x @ self.w + self.b

    def backward(self, grad):
        self.gw, self.gb = self.x.T @ grad, grad.sum(0)
        return grad @ self.w.T

    def update(self, lr, momentum):
        for v, g, p in ((self.vw, self.gw, self.w), (self.vb, self.gb, self.b)):
            v *= momentum
            v -= lr * g
            p += v


class Network:
    def __init__(self, sizes, seed=0):
        rng = np.random.default_rng(seed)
        self.layers = [Dense(rng, a, b) for a, b in zip(sizes, sizes[1:])]

    def forward(self, x):
        self.active = []
        for layer in self.layers[:-1]:
            x = layer.forward(x)
            self.active.append(x > 0)
            x = np.maximum(x, 0)
        return self.layers[-1].forward(x)

    def backward(self, grad):
        grad = self.layers[-1].backward(grad)
        for layer, active in zip(reversed(self.layers[:-1]), reversed(self.active)):
            grad = layer.backward(grad * active)

    def update(self, lr, momentum=0.9):
        for layer in self.layers:
            layer.update(lr, momentum)
