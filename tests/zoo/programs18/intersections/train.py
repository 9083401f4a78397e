"""Traffic lights: a Q network trained from a fixed set of recorded transitions."""

import argparse
import time

import torch
from replay import Replay
from torch import nn

torch.set_num_threads(1)


def q_network(state):
    return nn.Sequential(
        nn.Linear(state, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4)
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--arrays", action="store_true")
    args = parser.parse_args()

    torch.manual_seed(0)
    replay = Replay(120_000, 48)
    refresh = replay.refresh_arrays if args.arrays else replay.refresh
    q = q_network(48)
    optimizer = torch.optim.Adam(q.parameters(), lr=3e-4)

    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        index, states, actions, rewards = replay.sample(256)
        values = q(torch.from_numpy(states))
        taken = values.gather(1, torch.from_numpy(actions)[:, None]).squeeze(1)
        error = taken - torch.from_numpy(rewards)
        loss = error.pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        replay.errors[index] = error.detach().abs().numpy()
        if step % args.every == 0:
            refresh()
    print(f"loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
