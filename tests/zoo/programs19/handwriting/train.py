"""A variational autoencoder of pen strokes, with Lightning."""

import argparse
import logging
import time
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)

PIXELS = 32 * 32


class StrokeVAE(pl.LightningModule):
    def __init__(self, keep):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(PIXELS, 512), nn.ReLU(), nn.Linear(512, 2 * 24))
        self.decoder = nn.Sequential(nn.Linear(24, 512), nn.ReLU(), nn.Linear(512, PIXELS))
        self.keep = keep
        self.gallery = torch.empty(0, PIXELS)

    def remember(self, pictures):
        self.gallery = torch.cat([self.gallery, pictures.detach()])[-self.keep :]

    def training_step(self, batch, _):
        (strokes,) = batch
        mean, spread = self.encoder(strokes).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * torch.exp(spread / 2)
        logits = self.decoder(code)
        self.remember(logits)
        rebuilt = nn.functional.binary_cross_entropy_with_logits(logits, strokes)
        prior = (mean**2 + spread.exp() - spread - 1).mean() / 2
        return rebuilt + 0.01 * prior

    def on_train_end(self):
        print(f"gallery mean {torch.sigmoid(self.gallery[-64:]).mean().item():.3f}")

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=int, default=10**9)
    parser.add_argument("--steps", type=int, default=120)
    args = parser.parse_args()
    pl.seed_everything(33, verbose=False)
    torch.set_num_threads(1)
    strokes = (torch.rand(2048, PIXELS) < 0.2).float()
    loader = DataLoader(TensorDataset(strokes), batch_size=None, sampler=Slices(2048, 256))
    trainer = pl.Trainer(
        max_steps=args.steps,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    begin = time.perf_counter()
    trainer.fit(StrokeVAE(args.keep), loader)
    seconds = time.perf_counter() - begin
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


class Slices:
    """Whole batches at once: the indices of each."""

    def __init__(self, count, batch):
        self.count, self.batch = count, batch

    def __iter__(self):
        return iter(torch.randperm(self.count).split(self.batch))

    def __len__(self):
        return self.count // self.batch


if __name__ == "__main__":
    main()
