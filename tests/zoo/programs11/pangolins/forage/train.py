import argparse
import time

import torch

from .agent import Agent
from .config import Config
from .env import Burrows
from .replay import BUFFERS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--buffer", choices=sorted(BUFFERS), default="ranked")
    cfg = Config(buffer=parser.parse_args().buffer)
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    env = Burrows(cfg.envs, cfg.obs, cfg.actions, cfg.seed)
    replay = BUFFERS[cfg.buffer](cfg)
    agent = Agent(cfg)
    start = time.perf_counter()
    for _ in range(cfg.updates):
        action = agent.act(env.state)
        obs, reward, following = env.step(action)
        replay.add(obs, action, reward, following)
        where, batch = replay.sample(cfg.batch)
        errors = agent.learn(*batch)
        replay.update(where, errors)
        agent.follow()
    took = time.perf_counter() - start
    print(f"error {errors.mean():.4f}")
    print(f"trained {cfg.updates} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
