import logging
import time
import warnings

import lightning as L
import torch

from .data import BeltData
from .model import Grader

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def main():
    torch.set_num_threads(1)
    L.seed_everything(6, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=2,
        num_sanity_val_steps=0,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        logger=False,
    )
    model, data = Grader(), BeltData()
    start = time.perf_counter()
    trainer.fit(model, datamodule=data)
    seconds = time.perf_counter() - start
    print(f"val {trainer.callback_metrics['val']:.4f}")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
