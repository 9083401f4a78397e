import argparse
import time

import numpy as np
from scaling import RunningScaler, Scaler
from strategy import Strategy, act
from world import OBSERVATION, World

SCALERS = {"history": Scaler, "running": RunningScaler}


def rollout(world, scaler, weights, horizon):
    observations = world.reset()
    visited, fitness = [], 0
    for _ in range(horizon):
        visited.append(observations)
        observations, reward = world.advance(act(weights, scaler(observations)))
        fitness = fitness + reward
    return np.concatenate(visited), fitness


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=256)
    parser.add_argument("--horizon", type=int, default=12)
    parser.add_argument("--hidden", type=int, default=16)
    parser.add_argument("--scaler", choices=sorted(SCALERS), default="history")
    args = parser.parse_args()

    world = World(2 * args.pairs, seed=6)
    strategy = Strategy(args.pairs, args.hidden, sigma=0.05, lr=0.02, seed=6)
    scaler = SCALERS[args.scaler](OBSERVATION)

    begin = time.perf_counter()
    for generation in range(args.generations):
        weights = strategy.ask()
        visited, fitness = rollout(world, scaler, weights, args.horizon)
        strategy.tell(fitness)
        scaler.update(visited)
        if generation % 20 == 0:
            print(f"generation {generation}: best {fitness.max():.3f} mean {fitness.mean():.3f}")
    elapsed = time.perf_counter() - begin
    print(f"trained {args.generations} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
