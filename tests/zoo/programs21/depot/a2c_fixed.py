"""Advantage actor-critic on the depot."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from world_fixed import MOVES, Depot


class ActorCritic(nn.Module):
    def __init__(self, inputs, hidden=512):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.actor = nn.Linear(hidden, len(MOVES))
        self.critic = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.trunk(x)
        return self.actor(h), self.critic(h).squeeze(-1)


@torch.no_grad()
def rollout(envs, obs, net, length):
    seen, acts, rewards, dones = [], [], [], []
    for _ in range(length):
        x = torch.from_numpy(obs)
        actions = torch.distributions.Categorical(logits=net(x)[0]).sample()
        results = [env.step(a) for env, a in zip(envs, actions.tolist())]
        seen.append(x)
        acts.append(actions)
        rewards.append([r for _, r, _ in results])
        dones.append([d for _, _, d in results])
        obs = np.stack([o for o, _, _ in results])
    last = net(torch.from_numpy(obs))[1]
    return obs, torch.stack(seen), torch.stack(acts), rewards, dones, last


def discounted(rewards, dones, last, gamma):
    out = []
    value = last
    for r, d in zip(reversed(rewards), reversed(dones)):
        value = torch.tensor(r) + gamma * value * (1 - torch.tensor(d, dtype=torch.float32))
        out.append(value)
    return torch.stack(out[::-1]).float()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--envs", type=int, default=16)
    parser.add_argument("--length", type=int, default=8)
    parser.add_argument("--gamma", type=float, default=0.97)
    parser.add_argument("--lr", type=float, default=7e-4)
    args = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)

    envs = [Depot(seed=i) for i in range(args.envs)]
    obs = np.stack([env.observe() for env in envs])
    net = ActorCritic(obs.shape[1])
    optimizer = torch.optim.RMSprop(net.parameters(), lr=args.lr)

    total, start = 0.0, time.perf_counter()
    for update in range(1, args.updates + 1):
        obs, seen, acts, rewards, dones, last = rollout(envs, obs, net, args.length)
        returns = discounted(rewards, dones, last, args.gamma)
        logits, values = net(seen)
        dist = torch.distributions.Categorical(logits=logits)
        advantage = (returns - values).detach()
        policy_loss = -(dist.log_prob(acts) * advantage).mean()
        value_loss = F.mse_loss(values, returns)
        loss = policy_loss + 0.5 * value_loss - 0.01 * dist.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        total += float(np.mean(rewards))
        if update % 20 == 0:
            print(f"update {update}: mean reward {total / 20:.3f}")
            total = 0.0
    print(f"trained {args.updates} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
