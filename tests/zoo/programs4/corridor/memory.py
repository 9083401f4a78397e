import gc
import random
from dataclasses import dataclass

import torch


@dataclass
class Transition:
    obs: list
    action: int
    reward: float
    following: list
    done: bool
    info: dict


class Replay:
    def __init__(self, capacity):
        self.capacity = capacity
        self.items = []
        self.at = 0

    def add(self, item):
        if len(self.items) < self.capacity:
            self.items.append(item)
        else:
            self.items[self.at] = item
        self.at = (self.at + 1) % self.capacity

    def sample(self, n):
        picked = random.sample(self.items, n)
        return (
            torch.tensor([t.obs for t in picked]),
            torch.tensor([t.action for t in picked]),
            torch.tensor([t.reward for t in picked]),
            torch.tensor([t.following for t in picked]),
            torch.tensor([float(t.done) for t in picked]),
        )


class Housekeeping:
    """We ran out of memory on the lab machine once."""

    def __init__(self, every):
        self.every = every
        self.calls = 0

    def __call__(self):
        self.calls += 1
        if self.calls % self.every == 0:
            gc.collect()
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
