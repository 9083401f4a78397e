"""Advantage actor-critic."""

import argparse
import time

import torch
from envs import WalkerBatch
from returns import gae, gae_rows
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self, obs_dim, n_actions=4, hidden=256):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(obs_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.actor = nn.Linear(hidden, n_actions)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, obs):
        h = self.body(obs)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


def collect(env, policy, n_steps):
    obs, actions, rewards, dones, values = [], [], [], [], []
    now = torch.from_numpy(env.observe())
    with torch.no_grad():
        for _ in range(n_steps):
            dist, value = policy(now)
            action = dist.sample()
            following, reward, done = env.step(action.numpy())
            obs.append(now)
            actions.append(action)
            values.append(value)
            rewards.append(torch.from_numpy(reward))
            dones.append(torch.from_numpy(done))
            now = torch.from_numpy(following)
        last_value = policy(now)[1]
    return [torch.stack(x) for x in (obs, actions, rewards, dones, values)], last_value


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--updates", type=int, default=200)
    ap.add_argument("--envs", type=int, default=64)
    ap.add_argument("--horizon", type=int, default=16)
    ap.add_argument("--gamma", type=float, default=0.98)
    ap.add_argument("--lam", type=float, default=0.95)
    ap.add_argument("--advantages", choices=["gae", "gae-rows"], default="gae")
    args = ap.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    estimate = gae if args.advantages == "gae" else gae_rows

    env = WalkerBatch(args.envs)
    policy = Policy(env.obs_dim)
    optimizer = torch.optim.Adam(policy.parameters(), lr=7e-4, eps=1e-5)
    start = time.perf_counter()
    for update in range(args.updates):
        (obs, actions, rewards, dones, values), last_value = collect(env, policy, args.horizon)
        advantages = estimate(rewards, values, dones, last_value, args.gamma, args.lam)
        targets = advantages + values
        dist, value = policy(obs.flatten(0, 1))
        adv = advantages.flatten()
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        policy_loss = -(dist.log_prob(actions.flatten()) * adv).mean()
        value_loss = (value - targets.flatten()).pow(2).mean()
        loss = policy_loss + 0.5 * value_loss - 0.01 * dist.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
        if update % 50 == 0:
            print(f"update {update}: reward {rewards.mean():.3f} loss {loss.item():.4f}")
    print(f"final loss {loss.item():.5f}")
    print(f"trained {args.updates} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
