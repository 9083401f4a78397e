"""Separate speech from noise: noise is mixed in when a batch arrives."""

import argparse
import time
import warnings

import lightning.pytorch as pl
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def convolve_with_room(waves, rng):
    """Let each wave sound as in a room of its own."""
    out = []
    for wave in waves:
        decay = np.exp(-np.arange(4000) / rng.uniform(100, 600))
        room = rng.normal(size=4000) * decay
        room[0] = 1.0
        size = len(wave) + len(room)
        spectrum = np.fft.rfft(wave, size) * np.fft.rfft(room, size)
        out.append(np.fft.irfft(spectrum, size)[: len(wave)])
    return np.stack(out)


def add_noise(waves, rng):
    noise = np.cumsum(rng.normal(size=waves.shape), axis=1)
    noise -= noise.mean(1, keepdims=True)
    return waves + 0.3 * noise / (noise.std(1, keepdims=True) + 1e-6)


class Speech(Dataset):
    def __init__(self, count, length=8000):
        rng = np.random.default_rng(0)
        t = np.arange(length) / 8000
        pitch = rng.uniform(90, 400, (count, 1))
        self.waves = np.sin(2 * np.pi * pitch * t).astype(np.float32)

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, index):
        return torch.from_numpy(self.waves[index])


def mix(clean, rng):
    noisy = add_noise(convolve_with_room(clean.numpy(), rng), rng)
    return torch.from_numpy(noisy.astype(np.float32)), clean


class Separator(pl.LightningModule):
    def __init__(self, mix_here):
        super().__init__()
        self.mix_here = mix_here
        self.rng = np.random.default_rng(1)
        self.encode = nn.Conv1d(1, 24, 16, stride=8)
        self.mask = nn.Sequential(
            nn.Conv1d(24, 24, 5, padding=2), nn.ReLU(), nn.Conv1d(24, 24, 5, padding=2)
        )
        self.decode = nn.ConvTranspose1d(24, 1, 16, stride=8)

    def on_after_batch_transfer(self, batch, dataloader_idx):
        return mix(batch, self.rng) if self.mix_here else batch

    def training_step(self, batch, batch_idx):
        noisy, clean = batch
        code = self.encode(noisy[:, None])
        out = self.decode(code * torch.sigmoid(self.mask(code)))[:, 0]
        return nn.functional.l1_loss(out, clean[:, : out.shape[1]])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class MixCollate:
    """Mixes where batches are made: in the workers."""

    def __init__(self):
        self.rng = np.random.default_rng(1)

    def __call__(self, waves):
        return mix(torch.stack(waves), self.rng)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mix-in-workers", action="store_true")
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    pl.seed_everything(0)
    loader = DataLoader(
        Speech(640),
        batch_size=16,
        shuffle=True,
        num_workers=1,
        persistent_workers=True,
        collate_fn=MixCollate() if args.mix_in_workers else None,
    )
    trainer = pl.Trainer(
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(Separator(mix_here=not args.mix_in_workers), loader)
    seconds = time.perf_counter() - start
    print(f"trained {trainer.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
