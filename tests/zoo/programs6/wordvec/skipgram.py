import numpy as np


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-np.clip(x, -20, 20)))


class SkipGram:
    def __init__(self, words, width, seed=0):
        rng = np.random.default_rng(seed)
        self.inner = (rng.random((words, width), dtype=np.float32) - 0.5) / width
        self.outer = np.zeros((words, width), dtype=np.float32)

    def update_pairs(self, centre, context, label, lr):
        loss = 0.0
        for c, o, t in zip(centre, context, label):
            u, v = self.inner[c], self.outer[o]
            p = sigmoid(np.dot(u, v))
            g = p - t
            self.inner[c], self.outer[o] = u - lr * g * v, v - lr * g * u
            loss -= np.log(p if t else 1 - p)
        return loss / len(label)

    def update(self, centre, context, label, lr):
        u, v = self.inner[centre], self.outer[context]
        p = sigmoid(np.einsum("ij,ij->i", u, v))
        g = ((p - label) * lr).astype(np.float32)[:, None]
        np.subtract.at(self.inner, centre, g * v)
        np.subtract.at(self.outer, context, g * u)
        return -np.log(np.where(label == 1, p, 1 - p)).mean()
