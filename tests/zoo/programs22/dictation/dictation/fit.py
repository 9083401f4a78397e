import logging
import time
import warnings

import lightning as L
import torch

from dictation.data import Utterances
from dictation.model import Recogniser


class Clock(L.Callback):
    def on_train_start(self, trainer, module):
        self.start = time.perf_counter()

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.start


def main():
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    L.seed_everything(8, verbose=False)
    torch.set_num_threads(1)
    clock = Clock()
    trainer = L.Trainer(
        max_steps=100,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[clock],
    )
    trainer.fit(Recogniser(), datamodule=Utterances())
    print(f"trained {trainer.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
