import argparse
import time
import warnings

import torch

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl
from forecaster import Forecaster
from plants import PlantData

warnings.filterwarnings("ignore", ".*does not have many workers.*")


class BestError(pl.Callback):
    def __init__(self):
        self.best = float("inf")

    def on_validation_end(self, trainer, pl_module):
        self.best = min(self.best, float(trainer.callback_metrics["val_mae"]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--val-check-interval", type=int, default=7)
    args = parser.parse_args()

    torch.set_num_threads(1)
    pl.seed_everything(3, verbose=False)
    best = BestError()
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=args.epochs,
        val_check_interval=args.val_check_interval,
        num_sanity_val_steps=0,
        callbacks=[best],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    data = PlantData(args.batch_size)
    model = Forecaster()
    start = time.perf_counter()
    trainer.fit(model, datamodule=data)
    elapsed = time.perf_counter() - start
    print(f"best validation error {best.best:.4f}")
    print(f"trained {trainer.global_step} steps in {elapsed:.3f} s")
