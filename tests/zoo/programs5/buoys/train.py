import argparse
import multiprocessing
import time

import jax
import jax.numpy as jnp
import optax
from flax import linen as nn
from station import Archive, batches, batches_ahead, choose, serve


class WaveNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = x[..., None]
        for width in (32, 64, 64):
            x = nn.gelu(nn.Conv(width, (9,), strides=(2,))(x))
        return nn.Dense(1)(nn.gelu(nn.Dense(128)(x.reshape(len(x), -1))))[:, 0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--at-once", type=int, default=1)
    args = parser.parse_args()
    ready = multiprocessing.get_context("spawn").Queue()
    far = multiprocessing.get_context("spawn").Process(
        target=serve, args=(ready, 0.001), daemon=True
    )
    far.start()
    archive = Archive(ready.get())
    model = WaveNet()
    params = model.init(jax.random.key(0), jnp.zeros((1, 256)))
    optimizer = optax.adam(1e-3)
    state = optimizer.init(params)

    @jax.jit
    def train_step(params, state, waves, height):
        def loss_of(params):
            return jnp.mean((model.apply(params, waves) - height) ** 2)

        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    chosen = choose(100000, args.batch, args.steps)
    data = batches(archive, chosen)
    if args.at_once > 1:
        data = batches_ahead(archive, chosen, args.at_once)
    start = time.perf_counter()
    for step, (waves, height) in enumerate(data):
        params, state, loss = train_step(params, state, waves, height)
        if step % 40 == 0:
            print(f"step {step}: {float(loss):.4f}")
    print(f"final loss {float(loss):.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")
    far.terminate()


if __name__ == "__main__":
    main()
