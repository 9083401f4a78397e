import gc
import random
import time

import torch
from learner import Learner
from replay import MOVES, Arena, Replay

STEPS = 150
BATCH = 512


def warm_up(arena, replay, count, seed):
    chooser = random.Random(seed)
    for _ in range(count):
        replay.add(arena.play(chooser.randrange(MOVES)))


def main():
    torch.manual_seed(9)
    torch.set_num_threads(1)
    arena = Arena(seed=9)
    replay = Replay(capacity=40_000, seed=9)
    warm_up(arena, replay, 30_000, seed=10)
    learner = Learner()

    start = time.perf_counter()
    for step in range(1, STEPS + 1):
        replay.add(arena.play(learner.act(arena.board)))
        batch = replay.sample(BATCH)
        loss = learner.update(batch)
        del batch
        if step % 5 == 0:
            gc.collect()
        if step % 50 == 0:
            learner.sync_target()
            print(f"step {step}: loss {loss.item():.4f}, {len(replay.moves)} moves")
    print(f"trained {STEPS} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
