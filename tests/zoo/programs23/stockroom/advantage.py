"""Generalized advantage estimation over a chunk of logged days."""

import jax
import jax.numpy as jnp
import numpy as np


def estimate(profit, ended, values, discount, trace):
    profit, ended, values = profit.tolist(), ended.tolist(), values.tolist()
    days, shelves = len(profit), len(profit[0])
    advantage = np.zeros((days, shelves), dtype=np.float32)
    for shelf in range(shelves):
        carried = 0.0
        for day in reversed(range(days)):
            if ended[day][shelf]:
                following, carried = 0.0, 0.0
            else:
                following = values[day + 1][shelf]
            surprise = profit[day][shelf] + discount * following - values[day][shelf]
            carried = surprise + discount * trace * carried
            advantage[day, shelf] = carried
    return advantage


@jax.jit
def scan_estimate(profit, ended, values, discount, trace):
    alive = 1.0 - ended.astype(jnp.float32)
    surprise = profit + discount * alive * values[1:] - values[:-1]

    def back(carried, day):
        surprise, alive = day
        carried = surprise + discount * trace * alive * carried
        return carried, carried

    _, advantage = jax.lax.scan(back, jnp.zeros_like(values[0]), (surprise, alive), reverse=True)
    return advantage
