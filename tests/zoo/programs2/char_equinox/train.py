"""Next character with a convolutional model in Equinox."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

VOCABULARY, LENGTH, BATCH, STEPS = 64, 96, 32, 150


class CharModel(eqx.Module):
    embed: eqx.nn.Embedding
    layers: list
    out: eqx.nn.Linear

    def __init__(self, width, depth, key):
        keys = jax.random.split(key, depth + 2)
        self.embed = eqx.nn.Embedding(VOCABULARY, width, key=keys[0])
        self.layers = [eqx.nn.Linear(3 * width, width, key=k) for k in keys[1:-1]]
        self.out = eqx.nn.Linear(width, VOCABULARY, key=keys[-1])

    def __call__(self, tokens):
        h = jax.vmap(self.embed)(tokens)
        for index, layer in enumerate(self.layers):
            step = 2**index
            past = [jnp.pad(h, ((n * step, 0), (0, 0)))[: len(h)] for n in (0, 1, 2)]
            h = h + jax.nn.gelu(jax.vmap(layer)(jnp.concatenate(past, axis=1)))
        return jax.vmap(self.out)(h)


def make_text(length):
    rng = np.random.default_rng(0)
    follow = rng.integers(0, VOCABULARY, (VOCABULARY, 3))
    choice = rng.integers(0, 3, length)
    text = np.zeros(length, np.int32)
    for i in range(1, length):
        text[i] = follow[text[i - 1], choice[i]]
    return text


optimizer = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 2e-3, 20, STEPS))


@eqx.filter_value_and_grad
def compute_loss(model, x, y):
    logits = jax.vmap(model)(x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@eqx.filter_jit
def train_step(model, state, x, y):
    loss, grads = compute_loss(model, x, y)
    updates, state = optimizer.update(grads, state, eqx.filter(model, eqx.is_array))
    return eqx.apply_updates(model, updates), state, loss


def main():
    text = make_text(100_000)
    windows = np.lib.stride_tricks.sliding_window_view(text, LENGTH + 1)
    rng = np.random.default_rng(1)
    model = CharModel(128, 4, jax.random.PRNGKey(0))
    state = optimizer.init(eqx.filter(model, eqx.is_array))
    begin = time.perf_counter()
    for step in range(STEPS):
        batch = windows[rng.integers(0, len(windows), BATCH)]
        model, state, loss = train_step(model, state, batch[:, :-1], batch[:, 1:])
        if step % 50 == 49:
            print(f"step {step + 1} loss {float(loss):.4f}")
    jax.block_until_ready(loss)
    print(f"trained {STEPS} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
