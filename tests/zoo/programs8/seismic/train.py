"""Pick P-wave arrivals in station records, with Lightning."""

import argparse
import gzip
import json
import logging
import os
import time
import warnings

import lightning as L
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from records import StationRecords

warnings.filterwarnings("ignore")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


def write_records(root, count, samples):
    os.makedirs(root, exist_ok=True)
    rng = np.random.default_rng(3)
    for i in range(count):
        onset = int(rng.integers(200, samples - 400))
        trace = rng.normal(0, 0.1, (3, samples))
        trace[:, onset:] += np.sin(np.arange(samples - onset) / 9) * rng.uniform(0.5, 2)
        record = {
            "station": f"ST{i % 40:02d}",
            "onset": onset,
            "channels": {c: trace[k].round(5).tolist() for k, c in enumerate("ZNE")},
        }
        with gzip.open(os.path.join(root, f"{i:05d}.json.gz"), "wt", compresslevel=4) as f:
            json.dump(record, f)


class Picker(L.LightningModule):
    def __init__(self, width=48):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(3, width, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(width, width, 7, stride=2, padding=3),
            nn.ReLU(),
            nn.Conv1d(width, width, 7, padding=3),
            nn.ReLU(),
            nn.Conv1d(width, 1, 1),
        )

    def training_step(self, batch, batch_idx):
        trace, onset = batch
        return F.cross_entropy(self.net(trace).squeeze(1), onset // 4)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Clock(L.Callback):
    def on_train_start(self, trainer, module):
        self.start = time.perf_counter()

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--format", default="json", choices=["json", "npy"])
    args = parser.parse_args()
    L.seed_everything(1, verbose=False)
    torch.set_num_threads(1)
    write_records("records", 160, 2000)
    data = StationRecords("records", fmt=args.format)
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True, num_workers=0)
    clock = Clock()
    trainer = L.Trainer(
        max_epochs=9,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[clock],
    )
    trainer.fit(Picker(), loader)
    print(f"trained {trainer.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
