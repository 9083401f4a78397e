"""PPO, all in one file but for the landers."""

import argparse
import time

import torch
from env import Landers
from torch import nn


class ActorCritic(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(6, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.actor = nn.Linear(width, 3)
        self.critic = nn.Linear(width, 1)

    def forward(self, state):
        h = self.body(state)
        return torch.distributions.Categorical(logits=self.actor(h)), self.critic(h)[..., 0]


def advantages(rewards, values, dones, last, gamma=0.99, lam=0.95):
    """Generalised advantage estimation."""
    horizon, n = rewards.shape
    result = torch.zeros(horizon, n)
    for e in range(n):
        running = 0.0
        following = last[e].item()
        for t in reversed(range(horizon)):
            alive = 1.0 - float(dones[t, e])
            delta = rewards[t, e].item() + gamma * following * alive - values[t, e].item()
            running = delta + gamma * lam * alive * running
            result[t, e] = running
            following = values[t, e].item()
    return result


def advantages_together(rewards, values, dones, last, gamma=0.99, lam=0.95):
    result = torch.zeros_like(rewards)
    running, following = torch.zeros_like(last), last
    for t in reversed(range(len(rewards))):
        alive = 1.0 - dones[t].float()
        delta = rewards[t] + gamma * following * alive - values[t]
        running = delta + gamma * lam * alive * running
        result[t], following = running, values[t]
    return result


@torch.no_grad()
def collect(env, net, horizon):
    states, actions, logps, rewards, values, dones = [], [], [], [], [], []
    state = env.state.clone()
    for _ in range(horizon):
        policy, value = net(state)
        action = policy.sample()
        states.append(state)
        actions.append(action)
        logps.append(policy.log_prob(action))
        values.append(value)
        state, reward, done = env.step(action)
        rewards.append(reward)
        dones.append(done)
    rest = [torch.stack(x) for x in (states, actions, logps, rewards, values, dones)]
    return *rest, net(state)[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--horizon", type=int, default=32)
    parser.add_argument("--gae", choices=["each", "together"], default="each")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    env, net = Landers(args.envs), ActorCritic()
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-4)
    estimate = advantages_together if args.gae == "together" else advantages
    start = time.perf_counter()
    for update in range(args.updates):
        states, actions, old, rewards, values, dones, last = collect(env, net, args.horizon)
        gain = estimate(rewards, values, dones, last)
        returns = gain + values
        gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        policy, value = net(states)
        ratio = (policy.log_prob(actions) - old).exp()
        clipped = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
        loss = -clipped.mean() + 0.5 * (value - returns).square().mean()
        loss = loss - 0.01 * policy.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        if update % 20 == 0:
            print(f"update {update}: reward {rewards.mean().item():.3f}")
    print(f"trained {args.updates} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
