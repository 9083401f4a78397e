"""Tag marginal glosses: a flax encoder over sentences of different lengths."""

import argparse
import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax


class Tagger(nn.Module):
    width: int = 192
    tags: int = 12

    @nn.compact
    def __call__(self, tokens, mask):
        x = nn.Embed(800, self.width)(tokens) * mask[..., None]
        around = jnp.concatenate([jnp.roll(x, 1, axis=1), x, jnp.roll(x, -1, axis=1)], axis=-1)
        x = x + nn.Dense(self.width)(nn.relu(nn.Dense(2 * self.width)(around)))
        return nn.Dense(self.tags)(x)


def corpus(count, seed=5):
    rng = np.random.default_rng(seed)
    lengths = np.clip(rng.normal(46, 4, count), 30, 56).astype(int)
    return [rng.integers(1, 800, n).astype(np.int32) for n in lengths]


def pad(sentences, width=None):
    width = width or max(len(s) for s in sentences)
    tokens = np.zeros((len(sentences), width), np.int32)
    for row, sentence in zip(tokens, sentences):
        row[: len(sentence)] = sentence
    return tokens


def make_step(model, tx):
    @jax.jit
    def train_step(params, state, tokens):
        mask = tokens > 0

        def loss_fn(p):
            logits = model.apply(p, tokens, mask)
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, tokens % 12)
            return (loss * mask).sum() / mask.sum()

        loss, grads = jax.value_and_grad(loss_fn)(params)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return train_step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--pad-to", type=int)
    args = parser.parse_args()
    sentences = corpus(args.steps * args.batch)
    model, tx = Tagger(), optax.sgd(1e-2)
    first = pad(sentences[: args.batch], args.pad_to)
    params = model.init(jax.random.key(0), first, first > 0)
    state = tx.init(params)
    train_step = make_step(model, tx)
    began = time.perf_counter()
    for step in range(args.steps):
        tokens = pad(sentences[step * args.batch : (step + 1) * args.batch], args.pad_to)
        params, state, loss = train_step(params, state, jnp.asarray(tokens))
        if step % 30 == 29:
            print(f"step {step + 1} loss {loss:.4f}")
    jax.block_until_ready(params)
    print(f"trained {args.steps} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
