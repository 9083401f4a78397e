"""A Lightning module on a GPU."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

warnings.filterwarnings("ignore")


class Tables(IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    """Whole batches of rows, in an order of their own in each epoch."""

    def __init__(self, rows: int, size: int) -> None:
        self.x = torch.randn(rows, 256)
        self.size = size

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for start in torch.randperm(len(self.x) // self.size) * self.size:
            x = self.x[start : start + self.size]
            yield x, x[:, :1]


class Regressor(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(256, 8192), nn.GELU(), nn.Linear(8192, 8192), nn.GELU(),
            nn.Linear(8192, 8192), nn.GELU(), nn.Linear(8192, 1),
        )  # fmt: skip

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        x, y = batch
        loss = nn.functional.mse_loss(self.net(x), y)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-4, fused=True)


def main() -> None:
    L.seed_everything(0, verbose=False)
    loader = DataLoader(Tables(262_144, 4096), batch_size=None, pin_memory=True)
    trainer = L.Trainer(
        max_epochs=8, accelerator="gpu", devices=1, precision="bf16-mixed", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    begin = time.perf_counter()
    trainer.fit(Regressor(), loader)
    torch.cuda.synchronize()
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
