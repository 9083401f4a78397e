"""Prototypical network; a round is a handful of tasks, after which the rate is lowered."""

import argparse
import time

import torch
import torch.nn.functional as F
from episodes import Episodes
from torch import nn
from torch.utils.data import DataLoader


def encoder(width=24):
    layers, inputs = [], 1
    for _ in range(3):
        layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
        inputs = width
    return nn.Sequential(*layers, nn.Flatten())


def episode_loss(model, episode, shots):
    ways, each = episode.shape[:2]
    embedded = model(episode.flatten(0, 1)).unflatten(0, (ways, each))
    prototypes = embedded[:, :shots].mean(1)
    queries = embedded[:, shots:].flatten(0, 1)
    target = torch.arange(ways).repeat_interleave(each - shots)
    return F.cross_entropy(-torch.cdist(queries, prototypes), target)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=6)
    parser.add_argument("--keep-workers", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    loader = DataLoader(
        Episodes(args.tasks * 2),
        batch_size=2,
        shuffle=True,
        num_workers=2,
        persistent_workers=args.keep_workers,
    )
    model = encoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4, gamma=0.5)

    step = 0
    clock = time.perf_counter()
    for number in range(args.rounds):
        for tasks in loader:
            loss = sum(episode_loss(model, task, shots=4) for task in tasks) / len(tasks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        scheduler.step()
        if number % 4 == 3:
            print(f"round {number + 1}: {loss.item():.4f}")
    print(f"trained {step} steps in {time.perf_counter() - clock:.3f} s")


if __name__ == "__main__":
    main()
