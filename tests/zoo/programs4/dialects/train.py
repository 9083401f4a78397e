"""Dialect of a sentence from its characters: a small convolutional network in flax.nnx."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

N_CHARS, N_DIALECTS, LENGTH = 64, 9, 72


class DialectNet(nnx.Module):
    def __init__(self, dim, rngs):
        self.embed = nnx.Embed(N_CHARS, dim, rngs=rngs)
        self.conv1 = nnx.Conv(dim, dim, (5,), rngs=rngs)
        self.conv2 = nnx.Conv(dim, dim, (5,), rngs=rngs)
        self.norm = nnx.LayerNorm(dim, rngs=rngs)
        self.out = nnx.Linear(dim, N_DIALECTS, rngs=rngs)

    def __call__(self, chars):
        h = nnx.gelu(self.conv1(self.embed(chars)))
        h = self.norm(h + nnx.gelu(self.conv2(h)))
        return self.out(h.max(1))


def sentences(n, rng):
    dialect = rng.integers(0, N_DIALECTS, n)
    walk = np.cumsum(rng.integers(0, 4, (n, LENGTH)) + dialect[:, None], 1)
    return (walk % N_CHARS).astype(np.int32), dialect.astype(np.int32)


def loss_fn(model, chars, dialect):
    logits = model(chars)
    loss = optax.softmax_cross_entropy_with_integer_labels(logits, dialect).mean()
    return loss, jnp.mean(logits.argmax(1) == dialect)


@nnx.jit
def train_step(model, optimizer, chars, dialect):
    (loss, accuracy), grads = nnx.value_and_grad(loss_fn, has_aux=True)(model, chars, dialect)
    optimizer.update(model, grads)
    return loss, accuracy


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    rng = np.random.default_rng(7)
    chars, dialect = sentences(12000, rng)
    model = DialectNet(64, nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(2e-3), wrt=nnx.Param)
    start = time.perf_counter()
    for step in range(args.steps):
        pick = rng.integers(0, len(chars), args.batch)
        loss, accuracy = train_step(model, optimizer, chars[pick], dialect[pick])
        if step % 50 == 0:
            print(f"step {step}: loss {loss:.4f} accuracy {accuracy:.3f}")
    jax.block_until_ready(loss)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
