import argparse
import logging
import time

import lightning as L
import torch

from .data import DemandData
from .model import Forecaster


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--val-check-interval", type=int, default=12)
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(13, verbose=False)
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        val_check_interval=args.val_check_interval,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data, model = DemandData(), Forecaster()
    started = time.perf_counter()
    trainer.fit(model, datamodule=data)
    elapsed = time.perf_counter() - started
    print(f"mae {trainer.callback_metrics['val_mae']:.3f}")
    print(f"trained {trainer.global_step} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
