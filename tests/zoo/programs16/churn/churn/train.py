import argparse
import time

import torch

from .callbacks import Housekeeping, LossLog
from .trainer import Config, Trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-housekeeping", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    callbacks = [LossLog(every=50)]
    if not args.no_housekeeping:
        callbacks.append(Housekeeping(every=4))
    trainer = Trainer(Config(), callbacks)
    started = time.perf_counter()
    trainer.fit(epochs=1)
    print(f"trained {trainer.step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
