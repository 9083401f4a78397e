import argparse
import logging
import time
import warnings

import lightning as L
import torch

from callbacks import WeightBoard
from module import Coast, Colonies

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--board-every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(8, verbose=False)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=5,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[WeightBoard("board", args.board_every)],
    )
    model, data = Colonies(), Coast()
    start = time.perf_counter()
    trainer.fit(model, datamodule=data)
    took = time.perf_counter() - start
    print(f"trained {trainer.global_step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
