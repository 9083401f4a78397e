import torch


def gae(rewards, values, dones, last_value, gamma, lam):
    """Advantages of a rollout (time, envs), by the recursion in the paper."""
    n_steps, n_envs = rewards.shape
    advantages = torch.zeros_like(rewards)
    for e in range(n_envs):
        running = 0.0
        for t in reversed(range(n_steps)):
            following = last_value[e] if t == n_steps - 1 else values[t + 1, e]
            alive = 1.0 - dones[t, e]
            delta = rewards[t, e] + gamma * following * alive - values[t, e]
            running = delta + gamma * lam * alive * running
            advantages[t, e] = running
    return advantages


def gae_rows(rewards, values, dones, last_value, gamma, lam):
    advantages = torch.empty_like(rewards)
    following = torch.cat([values[1:], last_value[None]])
    alive = 1.0 - dones
    delta = rewards + gamma * following * alive - values
    running = torch.zeros_like(last_value)
    for t in reversed(range(len(rewards))):
        running = delta[t] + gamma * lam * alive[t] * running
        advantages[t] = running
    return advantages
