"""Generalised advantage estimation."""

import numpy as np


def gae(rewards, values, dones, last_value, gamma=0.99, lam=0.95):
    horizon, envs = rewards.shape
    advantages, targets = np.zeros_like(rewards), np.zeros_like(rewards)
    for env in range(envs):
        running = 0.0
        for t in reversed(range(horizon)):
            following = last_value[env] if t == horizon - 1 else values[t + 1, env]
            alive = 1.0 - dones[t, env]
            delta = rewards[t, env] + gamma * following * alive - values[t, env]
            running = delta + gamma * lam * alive * running
            advantages[t, env] = running
            targets[t, env] = running + values[t, env]
    return advantages, targets


def gae_rows(rewards, values, dones, last_value, gamma=0.99, lam=0.95):
    advantages = np.zeros_like(rewards)
    running, following = np.zeros_like(last_value), last_value
    for t in reversed(range(len(rewards))):
        alive = 1.0 - dones[t]
        delta = rewards[t] + gamma * following * alive - values[t]
        running = delta + gamma * lam * alive * running
        advantages[t] = running
        following = values[t]
    return advantages, advantages + values
