import jax
import jax.numpy as jnp
from flax import linen as nn


class SessionModel(nn.Module):
    items: int
    width: int = 96

    @nn.compact
    def __call__(self, history, candidates):
        table = nn.Embed(self.items, self.width)
        x = table(history)
        for _ in range(2):
            y = nn.LayerNorm()(x)
            y = nn.SelfAttention(num_heads=4)(y)
            x = x + y
            x = x + nn.Dense(self.width)(nn.gelu(nn.Dense(3 * self.width)(nn.LayerNorm()(x))))
        query = x.mean(axis=1)
        return jnp.einsum("bd,bkd->bk", query, table(candidates))


def ranking_loss(logits):
    return -jax.nn.log_softmax(logits, axis=1)[:, 0].mean()
