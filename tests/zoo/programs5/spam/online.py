"""A linear classifier that learns from one part of the mail after the other."""

import numpy as np


class OnlineLogistic:
    def __init__(self, n_features, lr=0.1, l2=1e-5):
        self.weights = np.zeros(n_features)
        self.bias = 0.0
        self.lr = lr
        self.l2 = l2

    def decision(self, X):
        return X @ self.weights + self.bias

    def partial_fit(self, X, y):
        n_rows, n_features = X.shape
        gradient = [0.0] * n_features
        bias = 0.0
        for row, target in zip(X, y):
            error = 1.0 / (1.0 + np.exp(-(row @ self.weights + self.bias))) - target
            for j in row.nonzero()[0]:
                gradient[j] += error * row[j]
            bias += error
        self.weights -= self.lr * (np.array(gradient) / n_rows + self.l2 * self.weights)
        self.bias -= self.lr * bias / n_rows
        return self


class OnlineLogisticArrays(OnlineLogistic):
    def partial_fit(self, X, y):
        error = 1.0 / (1.0 + np.exp(-self.decision(X))) - y
        self.weights -= self.lr * (error @ X / len(X) + self.l2 * self.weights)
        self.bias -= self.lr * error.mean()
        return self
