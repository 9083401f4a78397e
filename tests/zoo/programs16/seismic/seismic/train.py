import time

import torch

from .trainer import Config, Trainer


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    trainer = Trainer(Config())
    started = time.perf_counter()
    trainer.fit()
    print(f"trained {trainer.step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
