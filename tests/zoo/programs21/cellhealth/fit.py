"""State of health of battery cells from their charging curves."""

import argparse
import time
import warnings

import lightning as L
import torch

from cells import CellData
from module import HealthModel
from watch import WatchWeights

warnings.filterwarnings("ignore", ".*does not have many workers.*")


class Clock(L.Callback):
    def on_train_start(self, trainer, pl_module):
        self.start = time.perf_counter()

    def on_train_end(self, trainer, pl_module):
        self.elapsed = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--watch-every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(0)

    clock = Clock()
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=args.epochs,
        callbacks=[WatchWeights(every=args.watch_every), clock],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(HealthModel(), CellData())
    print(f"val_mae {trainer.callback_metrics['val_mae'].item():.4f}")
    print(f"trained {trainer.global_step} steps in {clock.elapsed:.3f} s")


if __name__ == "__main__":
    main()
