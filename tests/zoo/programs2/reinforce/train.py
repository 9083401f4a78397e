# Policy gradients on a field of many pendulums, all stepped at once as tensors.
import time

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)

PENDULUMS, HORIZON, UPDATES = 256, 12, 150

policy = nn.Sequential(
    nn.Linear(3, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 1)
)
log_std = nn.Parameter(torch.zeros(1))
optimizer = torch.optim.SGD([*policy.parameters(), log_std], lr=3e-3, momentum=0.9)


def observe(angle, speed):
    return torch.stack([angle.cos(), angle.sin(), speed / 8], dim=1)


def rollout():
    angle = (torch.rand(PENDULUMS) * 2 - 1) * 3.14
    speed = torch.randn(PENDULUMS)
    seen, done, rewards = [], [], []
    with torch.no_grad():
        for _ in range(HORIZON):
            state = observe(angle, speed)
            action = policy(state).squeeze(1) + log_std.exp() * torch.randn(PENDULUMS)
            force = action.clamp(-2, 2)
            rewards.append(-(angle**2 + 0.1 * speed**2 + 0.001 * force**2))
            speed = (speed + 0.05 * (15 * angle.sin() + 3 * force)).clamp(-8, 8)
            angle = torch.remainder(angle + 0.05 * speed + 3.1416, 6.2832) - 3.1416
            seen.append(state)
            done.append(action)
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    return torch.cat(seen), torch.cat(done), returns


update = 0
start = time.perf_counter()
while update < UPDATES:
    states, actions, returns = rollout()
    advantage = ((returns - returns.mean(1, keepdim=True)) / (returns.std() + 1e-6)).flatten()
    chosen = torch.distributions.Normal(policy(states).squeeze(1), log_std.exp())
    loss = -(chosen.log_prob(actions) * advantage).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    update += 1
    if update % 25 == 0:
        print(f"update {update} return {returns[0].mean().item():.2f}")
print(f"trained {UPDATES} steps in {time.perf_counter() - start:.3f} s")
