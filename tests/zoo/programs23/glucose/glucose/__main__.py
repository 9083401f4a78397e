import time
import warnings
from dataclasses import dataclass

import torch

try:
    from lightning.pytorch import Trainer, seed_everything
except ImportError:
    from pytorch_lightning import Trainer, seed_everything

from .cgm import loader
from .module import GlucoseForecast


@dataclass
class Plan:
    batch_size: int = 96
    train_batches: int = 60
    val_batches: int = 4
    epochs: int = 2
    seed: int = 31


def main(plan=Plan()):
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    torch.set_num_threads(1)
    seed_everything(plan.seed, verbose=False)
    trainer = Trainer(
        accelerator="cpu",
        max_epochs=plan.epochs,
        gradient_clip_val=1.0,
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    train = loader(plan.train_batches * plan.batch_size, plan.batch_size, plan.seed)
    val = loader(plan.val_batches * plan.batch_size, plan.batch_size, plan.seed + 1)
    start = time.perf_counter()
    trainer.fit(GlucoseForecast(), train, val)
    elapsed = time.perf_counter() - start
    trainer.save_checkpoint("glucose.ckpt")
    print(f"pinball loss {trainer.callback_metrics['val_pinball']:.4f}")
    print(f"trained {trainer.global_step} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
