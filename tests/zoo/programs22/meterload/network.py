import numpy as np


class Network:
    def __init__(self, sizes, seed):
        rng = np.random.default_rng(seed)
        self.weights = [
            rng.normal(0, (2 / a) ** 0.5, size=(a, b)).astype(np.float32)
            for a, b in zip(sizes, sizes[1:])
        ]
        self.biases = [np.zeros(b, dtype=np.float32) for b in sizes[1:]]

    def forward(self, x):
        self.inputs = []
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            self.inputs.append(x)
            x = x @ weight
            x += bias
            if i < len(self.weights) - 1:
                np.maximum(x, 0, out=x)
        return x

    def backward(self, gradient):
        gradients = []
        for i in reversed(range(len(self.weights))):
            gradients.append((self.inputs[i].T @ gradient, gradient.sum(axis=0)))
            if i:
                gradient = gradient @ self.weights[i].T
                gradient *= self.inputs[i] > 0
        return gradients[::-1]


class Momentum:
    def __init__(self, network, lr, beta=0.9):
        self.network, self.lr, self.beta = network, np.float32(lr), np.float32(beta)
        self.speed = [
            (np.zeros_like(w), np.zeros_like(b)) for w, b in zip(network.weights, network.biases)
        ]

    def step(self, gradients):
        for i, pair in enumerate(gradients):
            for value, speed, gradient in zip(
                (self.network.weights[i], self.network.biases[i]), self.speed[i], pair
            ):
                speed *= self.beta
                speed += gradient
                value -= self.lr * speed
