import jax.numpy as jnp
from flax import linen as nn


class AccentNet(nn.Module):
    """Time-delay network over filter-bank features."""

    n_accents: int = 6
    depth: int = 10
    width: int = 64

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(self.width, (5,))(x)
        for k in range(self.depth):
            h = nn.LayerNorm()(x)
            h = nn.Conv(self.width, (3,), kernel_dilation=2 ** (k % 4), feature_group_count=4)(h)
            x = x + nn.Dense(self.width)(nn.silu(h))
        pooled = jnp.concatenate([x.mean(1), x.std(1)], -1)
        return nn.Dense(self.n_accents)(nn.silu(nn.Dense(self.width)(pooled)))
