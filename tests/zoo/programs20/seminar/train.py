"""Question 5, Lightning: many short epochs on the marks of a seminar."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl


class Marks(Dataset):
    def __init__(self, count):
        torch.manual_seed(5)
        self.answers = torch.randn(count, 256)
        self.marks = self.answers[:, :16].mean(dim=1, keepdim=True)

    def __len__(self):
        return len(self.marks)

    def __getitem__(self, index):
        return self.answers[index], self.marks[index]


def sign_in(number):
    """Each worker signs in to the register of the faculty."""
    time.sleep(0.2)


class Marker(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 640), nn.ReLU(), nn.Linear(640, 1)
        )

    def training_step(self, batch, _):
        answers, marks = batch
        return nn.functional.mse_loss(self.net(answers), marks)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=16)
    parser.add_argument("--keep-workers", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    pl.seed_everything(5)
    loader = DataLoader(
        Marks(1536),
        batch_size=256,
        shuffle=True,
        num_workers=2,
        worker_init_fn=sign_in,
        persistent_workers=args.keep_workers,
    )
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=args.epochs,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(Marker(), loader)
    seconds = time.perf_counter() - start
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
