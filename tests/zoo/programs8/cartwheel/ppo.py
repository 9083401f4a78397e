"""Advantage actor-critic on a batch of carts, one update for each rollout."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from torch.distributions import Categorical

from advantages import gae, gae_rows
from envs import Carts


class ActorCritic(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.policy, self.value = nn.Linear(hidden, 2), nn.Linear(hidden, 1)

    def forward(self, state):
        h = self.body(state)
        return Categorical(logits=self.policy(h)), self.value(h).squeeze(-1)


@torch.no_grad()
def rollout(agent, carts, horizon):
    states, actions, rewards, values, dones = [], [], [], [], []
    for _ in range(horizon):
        state = torch.from_numpy(carts.state)
        policy, value = agent(state)
        action = policy.sample()
        _, reward, done = carts.step(action.numpy())
        states.append(state)
        actions.append(action)
        rewards.append(reward)
        values.append(value.numpy())
        dones.append(done.astype(np.float32))
    last = agent(torch.from_numpy(carts.state))[1].numpy()
    arrays = (np.stack(item) for item in (rewards, values, dones))
    return torch.stack(states), torch.stack(actions), *arrays, last


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--estimator", default="gae", choices=["gae", "gae_rows"])
    parser.add_argument("--updates", type=int, default=200)
    args = parser.parse_args()
    estimate = {"gae": gae, "gae_rows": gae_rows}[args.estimator]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    agent, carts = ActorCritic(), Carts(512)
    optimizer = torch.optim.Adam(agent.parameters(), lr=7e-4)
    start = time.perf_counter()
    for update in range(args.updates):
        states, actions, rewards, values, dones, last = rollout(agent, carts, 16)
        estimates = estimate(rewards, values, dones, last)
        advantage, target = (torch.from_numpy(part) for part in estimates)
        policy, value = agent(states)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        loss = -(policy.log_prob(actions) * advantage).mean()
        loss = loss + 0.5 * (value - target).pow(2).mean() - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        if update % 50 == 0:
            print(f"update {update} falls {dones.mean():.3f}")
    print(f"trained {args.updates} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
