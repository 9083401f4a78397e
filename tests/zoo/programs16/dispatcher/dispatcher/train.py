import argparse
import time
from dataclasses import dataclass

import torch

from .agent import EVALUATORS, ActorCritic
from .buffer import ReplayBuffer


@dataclass
class Config:
    evaluator: str = "time"
    features: int = 48
    actions: int = 16
    width: int = 128
    horizon: int = 64
    batch_size: int = 40
    updates: int = 240
    entropy_weight: float = 0.01


class Learner:
    def __init__(self, cfg: Config):
        self.cfg = cfg
        self.buffer = ReplayBuffer(512, cfg.horizon, cfg.features, cfg.actions)
        self.agent = ActorCritic(cfg.features, cfg.actions, cfg.width)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=3e-4)
        self.evaluate = EVALUATORS[cfg.evaluator]

    def update(self):
        batch = self.buffer.sample(self.cfg.batch_size)
        log_probs, values, entropy = self.evaluate(self.agent, batch)
        advantage = (batch.returns - values).detach()
        policy_loss = -(log_probs * advantage).mean()
        value_loss = (values - batch.returns).pow(2).mean()
        loss = policy_loss + 0.5 * value_loss - self.cfg.entropy_weight * entropy.mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--evaluator", choices=sorted(EVALUATORS), default="time")
    cfg = Config(**vars(parser.parse_args()))
    torch.set_num_threads(1)
    torch.manual_seed(1)
    learner = Learner(cfg)
    started = time.perf_counter()
    for update in range(cfg.updates):
        loss = learner.update()
        if update % 60 == 0:
            print(f"update {update}: loss {loss.item():.4f}")
    print(f"trained {cfg.updates} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
