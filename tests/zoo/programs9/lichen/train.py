"""Lichen species from photographs kept as PNG in memory."""

import argparse
import io
import random
import time

import lightning as L
import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, count=1200, size=112):
        rng = np.random.default_rng(3)
        self.blobs = []
        for _ in range(60):
            small = rng.integers(0, 255, (28, 28, 3), dtype=np.uint8)
            buffer = io.BytesIO()
            Image.fromarray(small).resize((size, size), Image.BILINEAR).save(buffer, "PNG")
            self.blobs.append(buffer.getvalue())
        self.labels = rng.integers(0, 8, count)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = Image.open(io.BytesIO(self.blobs[i % 60])).convert("RGB")
        image = image.resize((72, 72), Image.BICUBIC)
        if random.random() < 0.5:
            image = ImageOps.mirror(image)
        image = ImageEnhance.Color(image).enhance(random.uniform(0.7, 1.3))
        left, top = random.randrange(24), random.randrange(24)
        image = image.crop((left, top, left + 48, top + 48))
        pixels = np.asarray(image, dtype=np.float32) / 255
        return torch.from_numpy(pixels).permute(2, 0, 1), int(self.labels[i])


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 24, 5, stride=2), nn.ReLU(), nn.Conv2d(24, 48, 3, stride=2), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 8),
        )  # fmt: skip

    def training_step(self, batch, _):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    L.seed_everything(1)
    loader = DataLoader(
        Photos(), 16, shuffle=True, num_workers=args.workers, persistent_workers=args.workers > 0
    )
    trainer = L.Trainer(
        max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    start = time.perf_counter()
    trainer.fit(Classifier(), loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")
