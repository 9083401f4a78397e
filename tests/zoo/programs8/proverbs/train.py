"""A flax model that guesses where a proverb comes from."""

import argparse
import time
from functools import partial

import flax.linen as nn
import jax
import numpy as np
import optax
from flax.training.train_state import TrainState

VOCABULARY, ORIGINS = 500, 8


class Encoder(nn.Module):
    dim: int = 96

    @nn.compact
    def __call__(self, ids, mask):
        mask = mask[..., None]
        x = nn.Embed(VOCABULARY, self.dim)(ids) * mask
        x = x + nn.gelu(nn.Conv(self.dim, (5,))(x)) * mask
        x = (x * mask).sum(1) / mask.sum(1)
        return nn.Dense(ORIGINS)(x)


def make_proverbs(count, seed=0):
    rng = np.random.default_rng(seed)
    proverbs = []
    for _ in range(count):
        origin = int(rng.integers(ORIGINS))
        words = rng.integers(ORIGINS, VOCABULARY, int(rng.gamma(6, 0.9)) + 4)
        words[1] = origin
        proverbs.append((words, origin))
    return proverbs


def pad_batch(samples, multiple):
    longest = max(len(words) for words, _ in samples)
    length = -(-longest // multiple) * multiple
    ids = np.zeros((len(samples), length), np.int32)
    mask = np.zeros((len(samples), length), np.float32)
    for row, (words, _) in enumerate(samples):
        ids[row, : len(words)] = words
        mask[row, : len(words)] = 1
    return ids, mask, np.array([origin for _, origin in samples])


@partial(jax.jit, donate_argnums=0)
def train_step(state, ids, mask, origin):
    def loss_fn(params):
        logits = state.apply_fn(params, ids, mask)
        return optax.softmax_cross_entropy_with_integer_labels(logits, origin).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pad-multiple", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    proverbs = make_proverbs(960)
    model = Encoder()
    ids, mask, origin = pad_batch(proverbs[:32], args.pad_multiple)
    params = model.init(jax.random.PRNGKey(0), ids, mask)
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(1e-3))
    rng = np.random.default_rng(1)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        order = rng.permutation(len(proverbs))
        for at in range(0, len(order), 32):
            batch = pad_batch([proverbs[i] for i in order[at : at + 32]], args.pad_multiple)
            state, loss = train_step(state, *batch)
            steps += 1
        print(f"epoch {epoch} loss {float(loss):.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
