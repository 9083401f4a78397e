import argparse
import json
import logging
import time
import warnings

import lightning.pytorch as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class SealCounter(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 96, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(96, 128),
            nn.ReLU(),
            nn.Linear(128, 1),
        )

    def training_step(self, batch, batch_idx):
        tiles, counts = batch
        return nn.functional.poisson_nll_loss(self.net(tiles).squeeze(1), counts)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


class GradientJournal(pl.Callback):
    """Distribution of every gradient and weight, one JSON line a time."""

    def __init__(self, path, every, bins=64):
        self.path, self.every, self.bins = path, every, bins

    def on_train_start(self, trainer, module):
        self.file = open(self.path, "w")
        self.began = time.perf_counter()

    def describe(self, tensor):
        values = tensor.detach().flatten()
        counts, edges = torch.histogram(values, bins=self.bins)
        quantiles = torch.quantile(values, torch.tensor([0.05, 0.5, 0.95]))
        return {
            "counts": counts.tolist(),
            "edges": edges.tolist(),
            "quantiles": quantiles.tolist(),
            "norm": values.norm().item(),
        }

    def on_before_optimizer_step(self, trainer, module, optimizer):
        if trainer.global_step % self.every:
            return
        entry = {"step": trainer.global_step}
        for name, parameter in module.named_parameters():
            entry[name] = {
                "value": self.describe(parameter),
                "gradient": self.describe(parameter.grad),
            }
        self.file.write(json.dumps(entry) + "\n")

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.began
        self.file.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--journal-every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    pl.seed_everything(1, verbose=False)
    tiles = torch.rand(24 * 40, 3, 48, 48)
    data = TensorDataset(tiles, torch.poisson(torch.full((len(tiles),), 3.0)))
    journal = GradientJournal("gradients.jsonl", args.journal_every)
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=3,
        callbacks=[journal],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(SealCounter(), DataLoader(data, batch_size=24, shuffle=True))
    print(f"trained {trainer.global_step} steps in {journal.seconds:.3f} s")


if __name__ == "__main__":
    main()
