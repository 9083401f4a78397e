import argparse
import logging
import time

import lightning as L
import torch

from .config import ShelfConfig
from .data import ShelfData
from .model import ShelfClassifier


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-workers", type=int, default=0)
    args = parser.parse_args()

    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    cfg = ShelfConfig(num_workers=args.num_workers)
    L.seed_everything(cfg.seed, verbose=False)
    trainer = L.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data, model = ShelfData(cfg), ShelfClassifier(cfg)
    started = time.perf_counter()
    trainer.fit(model, data)
    elapsed = time.perf_counter() - started
    print(f"trained {trainer.global_step} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
