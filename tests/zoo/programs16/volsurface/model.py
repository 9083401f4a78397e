import equinox as eqx
import jax


class Surface(eqx.Module):
    """Implied volatility from strike, maturity and the state of the market."""

    layers: list
    readout: eqx.nn.Linear

    def __init__(self, inputs, width, depth, key):
        keys = jax.random.split(key, depth + 1)
        sizes = [inputs] + [width] * depth
        self.layers = [
            eqx.nn.Linear(a, b, key=k) for a, b, k in zip(sizes[:-1], sizes[1:], keys[:-1])
        ]
        self.readout = eqx.nn.Linear(width, "scalar", key=keys[-1])

    def __call__(self, x):
        for layer in self.layers:
            x = jax.nn.silu(layer(x))
        return jax.nn.softplus(self.readout(x))
