"""python -m spotting.fit --num-workers 2"""

import argparse
import time
import warnings

import lightning.pytorch as pl
import torch

from spotting.data import WordsModule
from spotting.model import Spotter


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--num-workers", type=int, default=0)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    pl.seed_everything(7)
    data = WordsModule(args.batch_size, args.num_workers)
    trainer = pl.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(Spotter(), datamodule=data)
    seconds = time.perf_counter() - start
    print(f"loss {trainer.callback_metrics['loss']:.3f}")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
