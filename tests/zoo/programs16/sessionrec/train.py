import argparse
import os
import time
from dataclasses import dataclass

os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)

import jax
import optax

from data import SessionSampler
from model import SessionModel, ranking_loss


@dataclass
class Config:
    items: int = 2000
    length: int = 24
    batch_size: int = 32
    negatives: int = 200
    steps: int = 180
    report_every: int = 1


class LossTracker:
    """Running mean of the loss, and the best so far."""

    def __init__(self, every):
        self.every = every
        self.waiting = []
        self.mean = None
        self.best = float("inf")

    def update(self, loss):
        self.waiting.append(loss)
        if len(self.waiting) == self.every:
            for value in self.waiting:
                value = float(value)
                self.mean = value if self.mean is None else 0.95 * self.mean + 0.05 * value
                self.best = min(self.best, value)
            self.waiting = []


def main(cfg: Config):
    sampler = SessionSampler(cfg.items, cfg.length, cfg.batch_size, cfg.negatives, seed=8)
    model = SessionModel(cfg.items)
    params = model.init(jax.random.PRNGKey(0), *sampler.batch())
    optimizer = optax.sgd(0.05, momentum=0.9)
    opt_state = optimizer.init(params)

    @jax.jit
    def train_step(params, opt_state, history, candidates):
        loss, grads = jax.value_and_grad(
            lambda p: ranking_loss(model.apply(p, history, candidates))
        )(params)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    tracker = LossTracker(cfg.report_every)
    started = time.perf_counter()
    for step in range(cfg.steps):
        history, candidates = sampler.batch()
        params, opt_state, loss = train_step(params, opt_state, history, candidates)
        tracker.update(loss)
    jax.block_until_ready(params)
    elapsed = time.perf_counter() - started
    print(f"mean {tracker.mean:.4f} best {tracker.best:.4f}")
    print(f"trained {cfg.steps} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--report-every", type=int, default=1)
    main(Config(**vars(parser.parse_args())))
