"""Four-part chorales, one token per voice and beat: a decoder in plain jax with optax."""

import argparse
import functools
import os
import pickle
import time

os.environ.setdefault("NPROC", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import jax
import jax.numpy as jnp
import numpy as np
import optax

NOTES, LENGTH, WIDTH, HEADS, LAYERS = 96, 64, 96, 4, 2


def compose(count, rng):
    roots = rng.integers(30, 50, (count, 1))
    chord = np.array([0, 7, 12, 16])
    walk = np.cumsum(rng.integers(-2, 3, (count, LENGTH // 4 + 1)), 1)
    notes = roots[..., None] + walk[..., None] + chord
    return np.clip(notes.reshape(count, -1), 0, NOTES - 1).astype(np.int32)[:, : LENGTH + 1]


def init(key):
    def matrix(key, a, b):
        return jax.random.normal(key, (a, b)) / a**0.5

    keys = iter(jax.random.split(key, 3 + 4 * LAYERS))
    return {
        "notes": jax.random.normal(next(keys), (NOTES, WIDTH)) * 0.02,
        "places": jax.random.normal(next(keys), (LENGTH, WIDTH)) * 0.02,
        "layers": [
            {
                "qkv": matrix(next(keys), WIDTH, 3 * WIDTH),
                "out": matrix(next(keys), WIDTH, WIDTH),
                "up": matrix(next(keys), WIDTH, 4 * WIDTH),
                "down": matrix(next(keys), 4 * WIDTH, WIDTH),
                "scale1": jnp.ones(WIDTH),
                "scale2": jnp.ones(WIDTH),
            }
            for _ in range(LAYERS)
        ],
    }


def rms(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


def attend(layer, x):
    b, t, c = x.shape
    q, k, v = jnp.split(x @ layer["qkv"], 3, -1)
    q, k, v = (a.reshape(b, t, HEADS, c // HEADS) for a in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (c // HEADS) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    return mixed.reshape(b, t, c) @ layer["out"]


def logits_of(params, tokens):
    x = params["notes"][tokens] + params["places"][: tokens.shape[1]]
    for layer in params["layers"]:
        x = x + attend(layer, rms(x, layer["scale1"]))
        x = x + jax.nn.gelu(rms(x, layer["scale2"]) @ layer["up"]) @ layer["down"]
    return x @ params["notes"].T


def loss_fn(params, rows):
    logits = logits_of(params, rows[:, :-1])
    return optax.softmax_cross_entropy_with_integer_labels(logits, rows[:, 1:]).mean()


def make_step(optimizer):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, rows):
        loss, grads = jax.value_and_grad(loss_fn)(params, rows)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=6)
    args = parser.parse_args()
    rng = np.random.default_rng(16)
    train, valid = compose(240, rng), compose(20, rng)
    total = args.epochs * (len(train) // args.batch_size)
    schedule = optax.warmup_cosine_decay_schedule(0.0, 2e-3, 20, total)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    params = init(jax.random.key(16))
    state = optimizer.init(params)
    step, evaluate = make_step(optimizer), jax.jit(loss_fn)

    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        order = rng.permutation(len(train)).reshape(-1, args.batch_size)
        losses = []
        for rows in order:
            params, state, loss = step(params, state, train[rows])
            losses.append(loss)
            steps += 1
        print(f"epoch {epoch}: {jnp.stack(losses).mean():.4f} valid {evaluate(params, valid):.4f}")
    seconds = time.perf_counter() - start
    with open("params.pkl", "wb") as file:
        pickle.dump(jax.device_get(params), file)
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
