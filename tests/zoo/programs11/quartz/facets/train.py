import argparse
import time

import jax
import numpy as np

from .config import Config
from .engine import Engine
from .model import init


def make_images(cfg):
    rng = np.random.default_rng(cfg.seed)
    basis = rng.standard_normal((12, cfg.pixels))
    mixed = rng.standard_normal((cfg.images, 12)) @ basis
    return (1.0 / (1.0 + np.exp(-mixed))).astype(np.float32)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--anneal", choices=["closure", "argument"], default="closure")
    cfg = Config(anneal=parser.parse_args().anneal)
    images = make_images(cfg)
    key = jax.random.PRNGKey(cfg.seed)
    engine = Engine(cfg, init(key, cfg))
    steps = 0
    start = time.perf_counter()
    for epoch in range(cfg.epochs):
        batches = np.split(images, cfg.images // cfg.batch)
        done, loss = engine.run_epoch(epoch, batches, jax.random.fold_in(key, epoch))
        steps += done
        print(f"epoch {epoch} loss {loss:.2f}")
    took = time.perf_counter() - start
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
