"""Short documents first, longer ones later: a curriculum in JAX."""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

VOCABULARY, WIDTH = 200, 128


def init(key):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "embedding": jax.random.normal(k1, (VOCABULARY, WIDTH)) * 0.1,
        "w": jax.random.normal(k2, (WIDTH, WIDTH)) / WIDTH**0.5,
        "out": jax.random.normal(k3, (WIDTH, 2)) / WIDTH**0.5,
    }


def loss_fn(params, ids, mask, labels):
    x = jnp.tanh(params["embedding"][ids] @ params["w"])
    x = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    logits = x @ params["out"]
    return jnp.mean(jax.nn.logsumexp(logits, 1) - jnp.where(labels, logits[:, 1], logits[:, 0]))


@jax.jit
def train_step(params, ids, mask, labels):
    loss, grads = jax.value_and_grad(loss_fn)(params, ids, mask, labels)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, grads), loss


def batches(steps, size, longest, pad_to):
    rng = np.random.default_rng(0)
    for step in range(steps):
        stage = 10 * step // steps
        longest_now = longest - 4 * (9 - stage)
        lengths = rng.integers(longest_now // 2, longest_now + 1, size)
        width = pad_to or longest_now
        mask = (np.arange(width)[None] < lengths[:, None]).astype(np.float32)
        yield rng.integers(0, VOCABULARY, (size, width)), mask, rng.integers(0, 2, size)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--pad-to", type=int, default=None)
    args = parser.parse_args()
    params = init(jax.random.PRNGKey(0))
    start = time.perf_counter()
    for ids, mask, labels in batches(args.steps, 48, 80, args.pad_to):
        params, loss = train_step(params, ids, mask, labels)
    print(f"loss {float(loss):.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
