"""Learn sparse codes of patches: an encoder and a dictionary, with NumPy alone."""

import argparse
import time

import numpy as np


class SparseCoder:
    def __init__(self, patch, atoms, seed=0):
        rng = np.random.default_rng(seed)
        self.encoder = (rng.normal(size=(patch, atoms)) / np.sqrt(patch)).astype(np.float32)
        self.bias = np.full(atoms, -0.1, np.float32)
        self.atoms = self.encoder.T.copy()

    def encode(self, x):
        return np.maximum(x @ self.encoder + self.bias, 0)

    def loss(self, x, sparsity):
        code = self.encode(x)
        return 0.5 * np.square(code @ self.atoms - x).sum(1).mean() + sparsity * code.sum(1).mean()

    def train_step(self, x, lr, sparsity):
        code = self.encode(x)
        residual = (code @ self.atoms - x) / len(x)
        d_atoms = code.T @ residual
        d_code = (residual @ self.atoms.T + sparsity / len(x)) * (code > 0)
        self.encoder -= lr * (x.T @ d_code)
        self.bias -= lr * d_code.sum(0)
        self.atoms -= lr * d_atoms
        self.atoms /= np.maximum(np.linalg.norm(self.atoms, axis=1, keepdims=True), 1.0)


def patches(count, size, seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
    strength = rng.laplace(size=(count, size)) * (rng.random((count, size)) < 0.1)
    return (strength @ basis).astype(np.float32)


def validate(model, held_out, sparsity):
    losses = []
    for start in range(0, len(held_out), 512):
        losses.append(model.loss(held_out[start : start + 512], sparsity))
    return float(np.mean(losses))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=280)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--atoms", type=int, default=640)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--sparsity", type=float, default=0.02)
    parser.add_argument("--validate-every", type=int, default=5)
    args = parser.parse_args()

    train = patches(16_384, 256, seed=1)
    held_out = patches(10_240, 256, seed=1)
    model = SparseCoder(256, args.atoms)
    rng = np.random.default_rng(2)
    best = np.inf
    begin = time.perf_counter()
    for step in range(1, args.steps + 1):
        batch = train[rng.integers(0, len(train), args.batch)]
        model.train_step(batch, args.lr, args.sparsity)
        if step % args.validate_every == 0:
            loss = validate(model, held_out, args.sparsity)
            if loss < best:
                best = loss
            if step % 50 == 0:
                print(f"step {step}: held-out loss {loss:.4f}, best {best:.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
