"""Deep Q-learning on a cart with a pole."""

import argparse
import math
import random
import time

import torch
from replay import ArrayReplay, FrameReplay
from torch import nn


class CartPole:
    def reset(self):
        self.state = [random.uniform(-0.05, 0.05) for _ in range(4)]
        self.age = 0
        return self.state

    def step(self, action):
        x, v, a, w = self.state
        force = 10.0 if action == 1 else -10.0
        sin, cos = math.sin(a), math.cos(a)
        push = (force + 0.05 * w * w * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos * cos / 1.1))
        speed = push - 0.05 * turn * cos / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * speed, a + 0.02 * w, w + 0.02 * turn]
        self.age += 1
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21 or self.age >= 200
        return self.state, 1.0, done


def q_network(hidden):
    return nn.Sequential(
        nn.Linear(4, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, hidden),
        nn.ReLU(),
        nn.Linear(hidden, 2),
    )


class Agent:
    def __init__(self, args):
        self.args = args
        self.online, self.target = q_network(args.hidden), q_network(args.hidden)
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=5e-4)
        self.replay = {"frame": FrameReplay, "array": ArrayReplay}[args.replay](2000)

    def act(self, state, epsilon):
        if random.random() < epsilon:
            return random.randrange(2)
        with torch.no_grad():
            return int(self.online(torch.tensor([state]))[0].argmax())

    def learn(self):
        states, actions, rewards, following, done = self.replay.sample(self.args.batch)
        states = torch.as_tensor(states, dtype=torch.float32)
        actions = torch.as_tensor(actions)
        rewards = torch.as_tensor(rewards, dtype=torch.float32)
        following = torch.as_tensor(following, dtype=torch.float32)
        done = torch.as_tensor(done, dtype=torch.float32)
        with torch.no_grad():
            best = self.target(following).max(1).values
            goal = rewards + 0.99 * best * (1 - done)
        value = self.online(states).gather(1, actions[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(value, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=320)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=448)
    parser.add_argument("--replay", choices=["frame", "array"], default="frame")
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)

    env, agent = CartPole(), Agent(args)
    state, episode, reached = env.reset(), 0, 0
    for _ in range(200):
        action = random.randrange(2)
        following, reward, done = env.step(action)
        agent.replay.push(state, action, reward, following, done)
        state = env.reset() if done else following

    begin = time.perf_counter()
    for step in range(args.steps):
        action = agent.act(state, epsilon=max(0.05, 1 - step / 150))
        following, reward, done = env.step(action)
        agent.replay.push(state, action, reward, following, done)
        loss = agent.learn()
        state = following
        if done:
            episode, reached = episode + 1, env.age
            state = env.reset()
        if step % 50 == 0:
            agent.target.load_state_dict(agent.online.state_dict())
            print(f"step {step} episode {episode} length {reached} loss {loss:.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
