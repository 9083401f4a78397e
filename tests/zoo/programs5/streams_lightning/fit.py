"""Who will leave a streaming service? Lightning, CSV log and a checkpoint an epoch."""

import time

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Churn(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.kinds = nn.ModuleList(nn.Embedding(20, 16) for _ in range(4))
        self.net = nn.Sequential(
            nn.Linear(16 * 4 + 24, 512), nn.SiLU(), nn.Linear(512, 512), nn.SiLU(),
            nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, 1),
        )  # fmt: skip

    def forward(self, numbers, kinds):
        embedded = [table(k) for table, k in zip(self.kinds, kinds.unbind(1))]
        return self.net(torch.cat([numbers, *embedded], 1))[:, 0]

    def step(self, batch, name):
        numbers, kinds, left = batch
        loss = nn.functional.binary_cross_entropy_with_logits(self(numbers, kinds), left)
        self.log(f"{name}_loss", loss, on_epoch=True)
        return loss

    def training_step(self, batch, batch_idx):
        return self.step(batch, "train")

    def validation_step(self, batch, batch_idx):
        self.step(batch, "valid")

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Fast(TensorDataset):
    def __getitems__(self, pick):
        return [t[pick] for t in self.tensors]


def main():
    L.seed_everything(0)
    torch.set_num_threads(1)
    numbers, kinds = torch.randn(40000, 24), torch.randint(20, (40000, 4))
    left = (numbers[:, 0] + kinds[:, 0] / 10 > 1).float()
    train = Fast(numbers[:36000], kinds[:36000], left[:36000])
    valid = Fast(numbers[36000:], kinds[36000:], left[36000:])
    trainer = L.Trainer(
        accelerator="cpu",
        max_epochs=3,
        log_every_n_steps=50,
        logger=CSVLogger("logs"),
        callbacks=[ModelCheckpoint("ckpt", monitor="valid_loss")],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Churn()
    start = time.perf_counter()
    trainer.fit(
        model,
        DataLoader(train, 360, shuffle=True, collate_fn=tuple),
        DataLoader(valid, 1000, collate_fn=tuple),
    )
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
