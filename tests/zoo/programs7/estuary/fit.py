"""Salinity along an estuary, as a function of place, tide and discharge."""

import argparse
import logging
import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Emulator(L.LightningModule):
    def __init__(self, inputs=96, width=512):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, 1),
        )

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.mse_loss(self.net(x).squeeze(-1), y)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9)


def table(rows=256 * 60):
    g = torch.Generator().manual_seed(12)
    x = torch.rand(rows, 96, generator=g)
    return TensorDataset(x, torch.sin(3 * x[:, 0]) * x[:, 1] + x[:, 2])


class Batches(torch.utils.data.Sampler):
    def __init__(self, rows, size):
        self.rows, self.size = rows, size

    def __iter__(self):
        return iter(torch.randperm(self.rows).split(self.size))

    def __len__(self):
        return self.rows // self.size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", default="64-true")
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = table()
    loader = DataLoader(data, sampler=Batches(len(data), 256), batch_size=None)
    trainer = L.Trainer(
        accelerator="cpu",
        precision=args.precision,
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Emulator()
    t = time.perf_counter()
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - t:.3f} s")


if __name__ == "__main__":
    main()
