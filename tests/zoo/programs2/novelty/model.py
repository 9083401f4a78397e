"""A forward model of the world: two hidden layers, by hand."""

import numpy as np


class ForwardModel:
    def __init__(self, sizes, lr, rng):
        self.lr = lr
        self.weights = [
            rng.normal(0, np.sqrt(2 / n), (n, m)).astype(np.float32)
            for n, m in zip(sizes, sizes[1:])
        ]
        self.biases = [np.zeros(m, np.float32) for m in sizes[1:]]
        self.speed = [np.zeros_like(p) for p in self.weights + self.biases]

    def forward(self, x):
        layers = [x]
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            x = x @ weight + bias
            if index < len(self.weights) - 1:
                x = np.maximum(x, 0)
            layers.append(x)
        return layers

    def backward(self, layers, gradient):
        weights, biases = [], []
        for index in reversed(range(len(self.weights))):
            weights.append(layers[index].T @ gradient)
            biases.append(gradient.sum(0))
            if index:
                gradient = (gradient @ self.weights[index].T) * (layers[index] > 0)
        return weights[::-1] + biases[::-1]

    def update(self, gradients):
        for value, speed, gradient in zip(self.weights + self.biases, self.speed, gradients):
            speed *= 0.9
            speed += gradient
            value -= self.lr * speed
