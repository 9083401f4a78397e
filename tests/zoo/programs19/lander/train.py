"""Landing on the moon with a policy gradient, all in NumPy."""

import argparse
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

GAMMA, LAMBDA = 0.99, 0.95


class Landers:
    """Many landers at once: height, speed, fuel and wind."""

    def __init__(self, count, rng):
        self.count, self.rng = count, rng
        self.reset()

    def reset(self):
        self.state = self.rng.normal(0, 0.3, (self.count, 8)).astype(np.float32)
        self.state[:, 0] += 1.0
        return self.state

    def step(self, thrust):
        s = self.state
        s[:, 1] += 0.05 * (thrust * 0.8 - 0.5) + 0.01 * s[:, 3]
        s[:, 0] += 0.05 * s[:, 1]
        s[:, 2] -= 0.01 * thrust
        s[:, 3:] += self.rng.normal(0, 0.02, (self.count, 5)).astype(np.float32)
        landed = s[:, 0] <= 0
        reward = 0.01 * -np.abs(s[:, 1]) + landed * (1.0 - 2.0 * np.abs(s[:, 1]))
        s[landed, 0] = 1.0
        s[landed, 1] = 0.0
        return s, reward.astype(np.float32), landed


class Policy:
    def __init__(self, rng, hidden=64):
        self.w1 = rng.normal(0, 0.3, (8, hidden)).astype(np.float32)
        self.w2 = rng.normal(0, 0.05, (hidden, hidden)).astype(np.float32)
        self.w3 = rng.normal(0, 0.05, (hidden, 3)).astype(np.float32)

    def forward(self, x):
        h1 = np.tanh(x @ self.w1)
        h2 = np.tanh(h1 @ self.w2)
        out = h2 @ self.w3
        e = np.exp(out[:, :2] - out[:, :2].max(axis=1, keepdims=True))
        return h1, h2, e / e.sum(axis=1, keepdims=True), out[:, 2]

    def update(self, x, action, advantage, target, lr):
        h1, h2, prob, value = self.forward(x)
        grad = np.empty((len(x), 3), dtype=np.float32)
        grad[:, :2] = prob * advantage[:, None]
        grad[np.arange(len(x)), action] -= advantage
        grad[:, 2] = value - target
        grad /= len(x)
        d2 = (grad @ self.w3.T) * (1 - h2 * h2)
        d1 = (d2 @ self.w2.T) * (1 - h1 * h1)
        self.w3 -= lr * (h2.T @ grad)
        self.w2 -= lr * (h1.T @ d2)
        self.w1 -= lr * (x.T @ d1)


def advantages_each(reward, value, done):
    """Generalised advantages, lander by lander."""
    length, count = reward.shape
    result = np.zeros_like(reward)
    for i in range(count):
        carry = 0.0
        for t in range(length - 1, -1, -1):
            alive = 0.0 if done[t, i] else 1.0
            delta = reward[t, i] + GAMMA * value[t + 1, i] * alive - value[t, i]
            carry = delta + GAMMA * LAMBDA * alive * carry
            result[t, i] = carry
    return result


def advantages_all(reward, value, done):
    """Generalised advantages, of all landers together."""
    alive = 1.0 - done.astype(np.float32)
    delta = reward + GAMMA * value[1:] * alive - value[:-1]
    decay = GAMMA * LAMBDA * alive
    result = delta.copy()
    for t in range(len(reward) - 2, -1, -1):
        result[t] += decay[t] * result[t + 1]
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--advantages", choices=["each", "all"], default="each")
    parser.add_argument("--iterations", type=int, default=150)
    args = parser.parse_args()
    advantages = advantages_each if args.advantages == "each" else advantages_all
    rng = np.random.default_rng(17)
    length, count = 32, 256
    landers, policy = Landers(count, rng), Policy(rng)
    state = landers.reset().copy()
    begin = time.perf_counter()
    for _ in range(args.iterations):
        states = np.empty((length, count, 8), dtype=np.float32)
        actions = np.empty((length, count), dtype=np.int64)
        reward = np.empty((length, count), dtype=np.float32)
        value = np.empty((length + 1, count), dtype=np.float32)
        done = np.empty((length, count), dtype=bool)
        for t in range(length):
            _, _, prob, value[t] = policy.forward(state)
            states[t] = state
            actions[t] = rng.random(count) < prob[:, 1]
            state, reward[t], done[t] = landers.step(actions[t])
        value[length] = policy.forward(state)[3]
        gain = advantages(reward, value, done)
        target = gain + value[:-1]
        scaled = (gain - gain.mean()) / (gain.std() + 1e-6)
        policy.update(
            states.reshape(-1, 8), actions.ravel(), scaled.ravel(), target.ravel(), lr=0.02
        )
    seconds = time.perf_counter() - begin
    print(f"mean reward {reward.mean():.4f}")
    print(f"trained {args.iterations} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
