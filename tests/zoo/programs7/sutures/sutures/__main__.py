import logging
import sys
import time
import warnings

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

from .task import Segmenter


def loader(count=320, batch=8):
    g = torch.Generator().manual_seed(31)
    images = torch.rand(count, 3, 96, 96, generator=g)
    masks = (images[:, 0, ::2, ::2] * 15.99).long()
    return DataLoader(TensorDataset(images, masks), batch_size=batch, shuffle=True)


def main(argv):
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    L.seed_everything(4, verbose=False)
    trainer = L.Trainer(
        max_epochs=5,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    task = Segmenter(score="matrix" if "--matrix" in argv else "exact")
    data = loader()
    t0 = time.perf_counter()
    trainer.fit(task, data)
    t1 = time.perf_counter()
    print("iou", round(float(trainer.callback_metrics["iou"]), 4))
    print(f"trained {trainer.global_step} steps in {t1 - t0:.3f} s")


main(sys.argv[1:])
