import time

import numpy as np

rng = np.random.default_rng(0)
EPOCHS, BATCH = 10, 256


class Dense:
    def __init__(self, inputs, outputs, activate=True):
        self.w = (rng.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs)).astype(np.float32)
        self.b = np.zeros(outputs, np.float32)
        self.activate = activate
        self.vw, self.vb = np.zeros_like(self.w), np.zeros_like(self.b)

    def forward(self, x):
        self.x = x
        z = x @ self.w + self.b
        self.y = np.maximum(z, 0) if self.activate else z
        return self.y

    def backward(self, grad):
        if self.activate:
            grad = grad * (self.y > 0)
        self.gw, self.gb = self.x.T @ grad, grad.sum(0)
        return grad @ self.w.T

    def step(self, lr):
        self.vw = 0.9 * self.vw - lr * self.gw
        self.vb = 0.9 * self.vb - lr * self.gb
        self.w += self.vw
        self.b += self.vb


class Autoencoder:
    def __init__(self, sizes):
        last = len(sizes) - 2
        self.layers = [Dense(n, m, i < last) for i, (n, m) in enumerate(zip(sizes, sizes[1:]))]

    def train_batch(self, x, lr):
        y = x
        for layer in self.layers:
            y = layer.forward(y)
        grad = (y - x) / len(x)
        for layer in reversed(self.layers):
            grad = layer.backward(grad)
        for layer in self.layers:
            layer.step(lr)
        return float(np.mean((y - x) ** 2))


hidden = rng.standard_normal((10_240, 12)).astype(np.float32)
mixing = rng.standard_normal((12, 320)).astype(np.float32)
data = np.tanh(hidden @ mixing)
model = Autoencoder([320, 768, 32, 768, 320])

steps = 0
begin = time.perf_counter()
for epoch in range(EPOCHS):
    order = rng.permutation(len(data))
    for start in range(0, len(data), BATCH):
        loss = model.train_batch(data[order[start : start + BATCH]], lr=0.01)
        steps += 1
    print(f"epoch {epoch} loss {loss:.4f}")
print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")
