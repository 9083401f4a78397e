"""Regression with Lightning; every metric of every step goes to a CSV file."""

import argparse
import time
import warnings

import lightning.pytorch as pl
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        out = self.net(x)
        loss = nn.functional.mse_loss(out, y)
        self.log("loss", loss)
        self.log("mae", (out - y).abs().mean())
        self.log("bias", (out - y).mean())
        return loss

    def on_before_optimizer_step(self, optimizer):
        if self.trainer.global_step % self.trainer.log_every_n_steps == 0:
            norms = {f"grad/{n}": p.grad.norm() for n, p in self.named_parameters()}
            self.logger.log_metrics(norms, self.trainer.global_step)
            self.logger.save()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log-every", type=int, default=1)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    pl.seed_everything(0)
    x = torch.randn(360 * 64, 64)
    loader = DataLoader(TensorDataset(x, x[:, :1] ** 2), batch_size=64)
    trainer = pl.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=CSVLogger("csv", flush_logs_every_n_steps=args.log_every),
        log_every_n_steps=args.log_every,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(Regressor(), loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
