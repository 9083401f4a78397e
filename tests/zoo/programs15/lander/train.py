"""Offline policy gradient on logged lander episodes."""

import time
import sys

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(6)
torch.set_num_threads(1)
GAMMA = 0.99
T = 110
EPISODES = 24


def returns_to_go(rewards):
    G = []
    for t in range(len(rewards)):
        g = 0.0
        for k in range(t, len(rewards)):
            g += GAMMA ** (k - t) * rewards[k]
        G.append(g)
    return G


def returns_backward(rewards):
    G, g = [], 0.0
    for r in reversed(rewards):
        g = r + GAMMA * g
        G.append(g)
    return G[::-1]


discount = returns_backward if "--backward" in sys.argv else returns_to_go

rng = np.random.default_rng(6)
observations = torch.from_numpy(rng.standard_normal((200, T, 32)).astype(np.float32))
actions = torch.from_numpy(rng.integers(0, 4, (200, T)))
rewards = rng.standard_normal((200, T)).tolist()

policy = nn.Sequential(
    nn.Linear(32, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 4)
)
optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)

updates = 150
start = time.perf_counter()
for update in range(updates):
    chosen = rng.choice(200, EPISODES, replace=False)
    returns = torch.tensor([discount(rewards[e]) for e in chosen])
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    logp = torch.log_softmax(policy(observations[chosen]), -1)
    logp = logp.gather(-1, actions[chosen].unsqueeze(-1)).squeeze(-1)
    loss = -(logp * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if update % 30 == 0:
        print(update, loss.item())
print(f"trained {updates} steps in {time.perf_counter() - start:.3f} s")
