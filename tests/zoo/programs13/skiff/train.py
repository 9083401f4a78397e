import argparse
import time
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from river import ACTIONS, SIGHT, River


class Policy(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(SIGHT, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.actor = nn.Linear(width, ACTIONS)
        self.critic = nn.Linear(width, 1)

    def forward(self, x):
        h = self.body(x)
        return self.actor(h), self.critic(h)[..., 0]


class Agent:
    def __init__(self, args):
        self.args = args
        self.policy = Policy(args.width)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=args.lr)

    @torch.no_grad()
    def act_single(self, observation):
        actions = []
        for row in observation:
            logits, _ = self.policy(torch.from_numpy(row))
            actions.append(Categorical(logits=logits).sample().item())
        return np.array(actions)

    @torch.no_grad()
    def act_fleet(self, observation):
        logits, _ = self.policy(torch.from_numpy(observation))
        return Categorical(logits=logits).sample().numpy()

    def rollout(self, river):
        act = self.act_single if self.args.act == "single" else self.act_fleet
        observation = river.reset()
        seen, done, rewards = [], [], []
        for _ in range(self.args.horizon):
            action = act(observation)
            seen.append(observation)
            done.append(action)
            observation, reward = river.step(action)
            rewards.append(reward)
        returns = np.zeros_like(rewards)
        value = np.zeros(river.count, np.float32)
        for t in reversed(range(self.args.horizon)):
            value = rewards[t] + self.args.gamma * value
            returns[t] = value
        return np.stack(seen), np.stack(done), returns, float(np.mean(rewards))

    def update(self, observations, actions, returns):
        observations = torch.from_numpy(observations).flatten(0, 1)
        actions = torch.from_numpy(actions).flatten()
        returns = torch.from_numpy(returns).flatten()
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        logits, values = self.policy(observations)
        chosen = Categorical(logits=logits)
        advantage = (returns - values).detach()
        loss = -(chosen.log_prob(actions) * advantage).mean()
        loss = loss + 0.5 * (returns - values).pow(2).mean() - 0.01 * chosen.entropy().mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.policy.parameters(), 0.5)
        self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser(description="Advantage policy gradient")
    parser.add_argument("--act", choices=["single", "fleet"], default="single")
    parser.add_argument("--iterations", type=int, default=120)
    parser.add_argument("--skiffs", type=int, default=20)
    parser.add_argument("--horizon", type=int, default=10)
    parser.add_argument("--width", type=int, default=640)
    parser.add_argument("--gamma", type=float, default=0.95)
    parser.add_argument("--lr", type=float, default=7e-4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)

    river = River(args.skiffs, 1)
    agent = Agent(args)
    recent = deque(maxlen=20)
    start = time.perf_counter()
    for iteration in range(1, args.iterations + 1):
        observations, actions, returns, reward = agent.rollout(river)
        loss = agent.update(observations, actions, returns)
        recent.append(reward)
        if iteration % 30 == 0:
            print(f"{iteration:4d}  reward {np.mean(recent):.3f}  loss {loss:+.3f}")
    seconds = time.perf_counter() - start
    torch.save(agent.policy.state_dict(), "policy.pt")
    print(f"trained {args.iterations} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
