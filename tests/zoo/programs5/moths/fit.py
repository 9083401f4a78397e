import sys
import time

import lightning as L
import torch
from torch import nn
from trap import TrapData


class MothNet(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 24, 5, 2, 2), nn.ReLU(), nn.Conv2d(24, 48, 3, 2, 1), nn.ReLU(),
            nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(768, 10),
        )  # fmt: skip

    def training_step(self, batch, batch_idx):
        photos, species = batch
        loss = nn.functional.cross_entropy(self.net(photos), species)
        self.log("loss", loss, on_step=False, on_epoch=True)
        return loss

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.7)]


def main(keep_workers):
    L.seed_everything(1)
    torch.set_num_threads(1)
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=25,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = MothNet()
    data = TrapData(keep_workers=keep_workers)
    start = time.perf_counter()
    trainer.fit(model, datamodule=data)
    seconds = time.perf_counter() - start
    print(f"loss {trainer.callback_metrics['loss']:.4f}")
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main("--keep-workers" in sys.argv[1:])
