"""Advantage actor-critic on a batch of simulated poles."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn

torch.set_num_threads(1)
ENVS, T, GAMMA, LAM = 64, 192, 0.99, 0.95


class ActorCritic(nn.Module):
    def __init__(self, obs=12, hidden=128):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(obs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.pi = nn.Linear(hidden, 4)
        self.v = nn.Linear(hidden, 1)

    def forward(self, x):
        h = self.body(x)
        return self.pi(h), self.v(h).squeeze(-1)


def rollout(rng):
    """What the vectorised simulator hands back."""
    obs = rng.standard_normal((T, ENVS, 12), dtype=np.float32)
    rewards = obs[..., 0] * 0.1 + 1.0
    dones = obs[..., 1] > 2.2
    actions = (obs[..., 2:6]).argmax(-1)
    return obs, actions, rewards, dones


def gae_per_env(rewards, values, dones):
    adv = np.zeros_like(rewards)
    for e in range(ENVS):
        last = 0.0
        for t in reversed(range(T)):
            nxt = values[t + 1][e] if t + 1 < T else 0.0
            alive = 1.0 - dones[t][e]
            delta = rewards[t][e] + GAMMA * nxt * alive - values[t][e]
            last = delta + GAMMA * LAM * alive * last
            adv[t][e] = last
    return adv


def gae_all_envs(rewards, values, dones):
    adv = np.zeros_like(rewards)
    alive = 1.0 - dones.astype(np.float32)
    nxt, last = np.zeros(ENVS, np.float32), np.zeros(ENVS, np.float32)
    for t in reversed(range(T)):
        last = rewards[t] + GAMMA * nxt * alive[t] - values[t] + GAMMA * LAM * alive[t] * last
        adv[t], nxt = last, values[t]
    return adv


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--updates", type=int, default=70)
    ap.add_argument("--gae", choices=["per-env", "all-envs"], default="per-env")
    args = ap.parse_args()
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    gae = gae_per_env if args.gae == "per-env" else gae_all_envs
    agent = ActorCritic()
    opt = torch.optim.Adam(agent.parameters(), lr=3e-4)
    began = time.perf_counter()
    for update in range(args.updates):
        obs, actions, rewards, dones = rollout(rng)
        logits, values = agent(torch.from_numpy(obs))
        adv = torch.from_numpy(gae(rewards, values.detach().numpy(), dones))
        returns = adv + values.detach()
        logp = (
            torch.log_softmax(logits, -1)
            .gather(-1, torch.from_numpy(actions)[..., None])
            .squeeze(-1)
        )
        adv = (adv - adv.mean()) / (adv.std() + 1e-8)
        loss = -(logp * adv).mean() + 0.5 * (returns - values).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        opt.step()
    print(f"trained {args.updates} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
