"""A surrogate of a heat pump, trained on simulated days with Equinox."""

import argparse
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("NPROC", "1")

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

HOURS = 96


class Simulator:
    """Weather in, power out; a new day is drawn for each sample."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def draw(self, count):
        noise = self.rng.standard_normal((count, HOURS, 12), dtype=np.float32)
        weather = np.cumsum(noise, axis=1) * 0.1
        lift = np.tanh(weather[..., 0]) - 0.2 * weather[..., 1]
        power = np.exp(0.3 * lift).mean(axis=1)
        return weather.reshape(count, -1), power


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--collect", choices=["each", "end"], default="each")
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--batch", type=int, default=512)
    args = parser.parse_args()
    model = eqx.nn.MLP(HOURS * 12, "scalar", 384, 3, key=jax.random.PRNGKey(6))
    params, static = eqx.partition(model, eqx.is_array)
    optimizer = optax.adam(3e-4)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, weather, power):
        def objective(params):
            model = eqx.combine(params, static)
            return jnp.mean((jax.vmap(model)(weather) - power) ** 2)

        loss, grads = jax.value_and_grad(objective)(params)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(params, updates), state, loss

    simulator = Simulator(6)
    weather, power = simulator.draw(args.batch)
    jax.block_until_ready(step(params, state, weather, power)[2])

    losses = []
    begin = time.perf_counter()
    for _ in range(args.steps):
        params, state, loss = step(params, state, weather, power)
        losses.append(float(loss) if args.collect == "each" else loss)
        weather, power = simulator.draw(args.batch)
    losses = [float(loss) for loss in losses]
    seconds = time.perf_counter() - begin
    print(f"loss {np.mean(losses[-20:]):.4f}")
    print(f"trained {args.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
