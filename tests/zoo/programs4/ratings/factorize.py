"""Matrix factorization with features of the films, NumPy only."""

import argparse
import time

import numpy as np


class Factors:
    def __init__(self, n_users, n_films, n_features, dim, rng):
        self.users = rng.normal(0, 0.1, (n_users, dim))
        self.films = rng.normal(0, 0.1, (n_films, dim))
        self.lift = rng.normal(0, 0.1, (n_features, dim))
        self.second = {name: np.zeros_like(value) for name, value in vars(self).items()}

    def film_vectors(self, features, films):
        return self.films[films] + np.tanh(features[films] @ self.lift)

    def apply(self, grads, lr):
        """Adagrad."""
        for name, g in grads.items():
            self.second[name] += g * g
            value = getattr(self, name)
            value -= lr * g / (np.sqrt(self.second[name]) + 1e-8)


def gradients_each(model, features, u, f, stars, decay):
    """Adds up what each rating says."""
    grads = {name: np.zeros_like(getattr(model, name)) for name in ("users", "films", "lift")}
    loss = 0.0
    for user, film, star in zip(u, f, stars):
        hidden = np.tanh(features[film] @ model.lift)
        vector = model.films[film] + hidden
        error = model.users[user] @ vector - star
        loss += error**2
        grads["users"][user] += error * vector + decay * model.users[user]
        grads["films"][film] += error * model.users[user] + decay * model.films[film]
        back = error * model.users[user] * (1 - hidden**2)
        grads["lift"] += features[film][:, None] * back[None]
    return loss / len(u), {name: g / len(u) for name, g in grads.items()}


def gradients_batch(model, features, u, f, stars, decay):
    grads = {name: np.zeros_like(getattr(model, name)) for name in ("users", "films")}
    hidden = np.tanh(features[f] @ model.lift)
    vectors = model.films[f] + hidden
    error = (model.users[u] * vectors).sum(1, keepdims=True) - stars[:, None]
    np.add.at(grads["users"], u, error * vectors + decay * model.users[u])
    np.add.at(grads["films"], f, error * model.users[u] + decay * model.films[f])
    grads["lift"] = features[f].T @ (error * model.users[u] * (1 - hidden**2))
    return float((error**2).mean()), {name: g / len(u) for name, g in grads.items()}


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--gradients", choices=["each", "batch"], default="each")
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--batch", type=int, default=1024)
    ap.add_argument("--dim", type=int, default=48)
    args = ap.parse_args()
    rng = np.random.default_rng(12)
    n_users, n_films, n_features = 3000, 1500, 32
    features = rng.normal(0, 1, (n_films, n_features))
    taste = rng.normal(0, 0.4, (n_users, n_features))
    model = Factors(n_users, n_films, n_features, args.dim, rng)
    gradients = gradients_each if args.gradients == "each" else gradients_batch
    average = None
    start = time.perf_counter()
    for step in range(args.steps):
        u = rng.integers(0, n_users, args.batch)
        f = rng.integers(0, n_films, args.batch)
        stars = np.clip((taste[u] * features[f]).sum(1) + rng.normal(0, 0.3, args.batch), -2, 2)
        loss, grads = gradients(model, features, u, f, stars, 1e-3)
        model.apply(grads, lr=0.1)
        average = loss if average is None else 0.98 * average + 0.02 * loss
        if step % 100 == 0:
            print(f"step {step} loss {average:.5f}")
    print(f"loss {average:.6f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
