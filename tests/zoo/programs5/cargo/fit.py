import argparse
import gc
import time

import lightning as L
import torch
from manifest import Papers
from torch import nn
from torch.utils.data import DataLoader, RandomSampler


class FreeMemory(L.Callback):
    """It ran out of memory once."""

    def __init__(self, every):
        self.every = every

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        if batch_idx % self.every == self.every - 1:
            gc.collect()


class Duty(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(10, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
        )

    def training_step(self, batch, batch_idx):
        papers, duty = batch
        loss = nn.functional.mse_loss(self.net(papers)[:, 0], duty)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--free-every", type=int, default=1)
    args = parser.parse_args()
    L.seed_everything(0)
    torch.set_num_threads(1)
    papers = Papers(8000)
    loader = DataLoader(papers, 128, sampler=RandomSampler(papers, num_samples=128 * 100))
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=1,
        callbacks=[FreeMemory(args.free_every)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(Duty(), loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
