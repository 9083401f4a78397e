"""A Lightning module on a GPU."""

from __future__ import annotations

import time
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")


class Regressor(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(256, 4096), nn.GELU(), nn.Linear(4096, 4096), nn.GELU(),
            nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 1),
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
    x = torch.randn(65536, 256)
    loader = DataLoader(
        TensorDataset(x, x[:, :1]), batch_size=8192, shuffle=True, num_workers=6,
        pin_memory=True, persistent_workers=True, prefetch_factor=4,
    )  # fmt: skip
    trainer = L.Trainer(
        max_epochs=20, accelerator="gpu", devices=1, precision="bf16-mixed", logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    begin = time.perf_counter()
    trainer.fit(Regressor(), loader)
    torch.cuda.synchronize()
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
