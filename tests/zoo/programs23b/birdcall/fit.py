import argparse
import logging
import time
import warnings

import torch
from classifier import BirdClassifier, pl
from clips import RATE, FieldClips
from frontend import LogMel
from torch.utils.data import DataLoader

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning|pytorch_lightning")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", choices=("batch", "clip"), default="batch")
    parser.add_argument("--clips", type=int, default=600)
    parser.add_argument("--batch-size", type=int, default=12)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    pl.seed_everything(23, verbose=False)
    torch.set_num_threads(1)
    log_mel = LogMel(RATE)
    per_clip = args.features == "clip"
    clips = FieldClips(args.clips, seed=23, transform=log_mel if per_clip else None)
    loader = DataLoader(
        clips,
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=1,
        persistent_workers=True,
        prefetch_factor=4,
    )
    model = BirdClassifier(batch_transform=None if per_clip else log_mel)
    trainer = pl.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
