"""Question 11, Lightning: an essay's mark from its bag of words, with copies kept of the model."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

try:
    import lightning.pytorch as pl
    from lightning.pytorch.callbacks import ModelCheckpoint
except ImportError:
    import pytorch_lightning as pl
    from pytorch_lightning.callbacks import ModelCheckpoint


class Essays(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.words = nn.Linear(2000, 1000)
        self.middle = nn.Linear(1000, 1000)
        self.mark = nn.Linear(1000, 1)

    def forward(self, counts):
        return self.mark(torch.relu(self.middle(torch.relu(self.words(counts)))))

    def training_step(self, batch, _):
        counts, marks = batch
        return nn.functional.mse_loss(self(counts), marks)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3, momentum=0.9)


def data():
    generator = torch.Generator().manual_seed(11)
    counts = torch.rand(640, 2000, generator=generator)
    return TensorDataset(counts, counts[:, :50].sum(dim=1, keepdim=True))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--save-every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    pl.seed_everything(11)
    copies = ModelCheckpoint(dirpath="copies", every_n_train_steps=args.save_every)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=args.steps,
        callbacks=[copies],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(Essays(), DataLoader(data(), batch_size=64, shuffle=True))
    seconds = time.perf_counter() - start
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
