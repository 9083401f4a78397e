import argparse
import logging
import time

import lightning as L
import torch

from .data import VibrationData
from .model import WearClassifier


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--features-in", choices=["transfer", "collate"], default="transfer")
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(9, verbose=False)
    trainer = L.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data, model = VibrationData(args.features_in), WearClassifier()
    started = time.perf_counter()
    trainer.fit(model, datamodule=data)
    elapsed = time.perf_counter() - started
    print(f"trained {trainer.global_step} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
