import argparse
import time

import numpy as np
import torch
from fleet import Fleet, Memory
from torch import nn


def network():
    return nn.Sequential(
        nn.Conv2d(2, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(),
        nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 5),
    )  # fmt: skip


def save_state(path, online, optimizer, memory, step):
    """Everything that is needed to go on from here."""
    torch.save(
        {
            "step": step,
            "model": online.state_dict(),
            "optimizer": optimizer.state_dict(),
            "memory": {k: v for k, v in vars(memory).items()},
        },
        path,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--save-every", type=int, default=15)
    parser.add_argument("--memory", type=int, default=8000)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    fleet, memory = Fleet(), Memory(args.memory, (2, 16, 16))
    online, target = network(), network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=5e-4)
    start = time.perf_counter()
    for step in range(1, args.steps + 1):
        seen = fleet.view()
        with torch.no_grad():
            action = online(torch.from_numpy(seen)).argmax(1).numpy()
        explore = rng.random(len(action)) < 0.1
        action[explore] = rng.integers(5, size=explore.sum())
        reward = fleet.move(action)
        memory.add(seen, action, reward, fleet.view())
        seen, action, reward, after = map(torch.from_numpy, memory.sample(64, rng))
        with torch.no_grad():
            wanted = reward + 0.95 * target(after).amax(1)
        value = online(seen).gather(1, action[:, None])[:, 0]
        loss = nn.functional.smooth_l1_loss(value, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            target.load_state_dict(online.state_dict())
            print(f"step {step}: reward {reward.mean().item():.3f}")
        if step % args.save_every == 0:
            save_state("latest.pt", online, optimizer, memory, step)
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
