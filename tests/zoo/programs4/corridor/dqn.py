"""Double DQN in a corridor with doors."""

import argparse
import copy
import random
import time

import torch
from memory import Housekeeping, Replay, Transition
from torch import nn


class Corridor:
    WIDTH = 24

    def __init__(self, rng):
        self.rng = rng
        self.reset()

    def reset(self):
        self.x, self.t = 0, 0
        self.doors = [self.rng.random() < 0.3 for _ in range(self.WIDTH)]
        return self.observe()

    def observe(self):
        here = [0.0] * self.WIDTH
        here[self.x] = 1.0
        return here + [float(d) for d in self.doors]

    def step(self, action):
        self.t += 1
        if action == 2:
            self.doors[self.x] = False
        elif action == 1 and not self.doors[self.x]:
            self.x = min(self.x + 1, self.WIDTH - 1)
        elif action == 0:
            self.x = max(self.x - 1, 0)
        done = self.x == self.WIDTH - 1 or self.t >= 120
        reward = 1.0 if self.x == self.WIDTH - 1 else -0.01
        return self.observe(), reward, done, {"x": self.x, "t": self.t}


class QNet(nn.Sequential):
    def __init__(self, n_obs, n_actions=3, hidden=384):
        super().__init__(
            nn.Linear(n_obs, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, n_actions),
        )


def play(env, obs, choose, replay, n):
    for _ in range(n):
        action = choose(obs)
        following, reward, done, info = env.step(action)
        replay.add(Transition(obs, action, reward, following, done, info))
        obs = env.reset() if done else following
    return obs


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--updates", type=int, default=150)
    p.add_argument("--prefill", type=int, default=12000)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--tidy-every", type=int, default=1)
    args = p.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    random.seed(0)
    rng = random.Random(1)

    env, replay = Corridor(rng), Replay(100_000)
    obs = play(env, env.reset(), lambda _: rng.choice((0, 1, 1, 2)), replay, args.prefill)
    online = QNet(2 * Corridor.WIDTH)
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=5e-4)
    tidy = Housekeeping(args.tidy_every)

    @torch.no_grad()
    def greedy(o):
        return rng.randrange(3) if rng.random() < 0.1 else int(online(torch.tensor(o)).argmax())

    start = time.perf_counter()
    for update in range(args.updates):
        obs = play(env, obs, greedy, replay, 4)
        state, action, reward, following, done = replay.sample(args.batch)
        with torch.no_grad():
            best = online(following).argmax(1, keepdim=True)
            value = reward + 0.98 * (1 - done) * target(following).gather(1, best).squeeze(1)
        q = online(state).gather(1, action[:, None]).squeeze(1)
        loss = nn.functional.smooth_l1_loss(q, value)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if update % 50 == 0:
            target.load_state_dict(online.state_dict())
            print(f"update {update}: loss {loss.item():.5f}")
        tidy()
    print(f"trained {args.updates} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
