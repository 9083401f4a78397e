"""Is it worth reading? Subject lines of mails, classified with Flax."""

import argparse
import os
import time

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

VOCABULARY = 3000


class Reader(nn.Module):
    width: int = 128

    @nn.compact
    def __call__(self, tokens):
        seen = (tokens > 0)[..., None]
        x = nn.Embed(VOCABULARY, self.width)(tokens)
        x = x + nn.Dense(self.width)(nn.gelu(nn.Dense(3 * self.width)(x)))
        pooled = (x * seen).sum(axis=1) / seen.sum(axis=1)
        return nn.Dense(2)(pooled)


class Mails:
    """Batches of made-up subject lines, mostly short."""

    def __init__(self, steps, batch, round_up):
        self.steps, self.batch, self.round_up = steps, batch, round_up

    def __iter__(self):
        rng = np.random.default_rng(23)
        longest = 32 + rng.permutation(self.steps) % 9
        for limit in longest:
            lengths = rng.integers(6, limit + 1, self.batch)
            lengths[0] = limit
            width = -(-limit // self.round_up) * self.round_up
            tokens = rng.integers(1, VOCABULARY, (self.batch, width))
            tokens[np.arange(width) >= lengths[:, None]] = 0
            yield tokens.astype(np.int32), (tokens[:, 0] % 2).astype(np.int32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--round-up", type=int, default=1)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--batch", type=int, default=48)
    args = parser.parse_args()
    model = Reader()
    optimizer = optax.adam(1e-3)
    params = model.init(jax.random.PRNGKey(0), jnp.ones((1, 40), jnp.int32))
    state = optimizer.init(params)

    @jax.jit
    def train_step(params, state, tokens, labels):
        def objective(params):
            logits = model.apply(params, tokens)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        loss, grads = jax.value_and_grad(objective)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    begin = time.perf_counter()
    for tokens, labels in Mails(args.steps, args.batch, args.round_up):
        params, state, loss = train_step(params, state, tokens, labels)
    jax.block_until_ready(loss)
    seconds = time.perf_counter() - begin
    print(f"loss {float(loss):.3f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
