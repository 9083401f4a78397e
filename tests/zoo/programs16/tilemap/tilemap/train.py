import logging
import time

import lightning as L
import torch

from .data import TileData
from .model import BuildingNet


def main():
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(2, verbose=False)
    trainer = L.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data, model = TileData(), BuildingNet()
    started = time.perf_counter()
    trainer.fit(model, datamodule=data)
    elapsed = time.perf_counter() - started
    print(f"trained {trainer.global_step} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
