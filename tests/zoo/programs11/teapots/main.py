import logging
import time
import warnings

import lightning as L
import torch

from callbacks import EpochPrinter
from module import Pose, Views

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")


def main():
    torch.set_num_threads(1)
    L.seed_everything(23, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[EpochPrinter()],
    )
    start = time.perf_counter()
    trainer.fit(Pose(), datamodule=Views())
    took = time.perf_counter() - start
    print(f"trained {trainer.global_step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
