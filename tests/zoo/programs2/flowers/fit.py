import argparse
import time
import warnings

import lightning.pytorch as pl
import numpy as np
import torch
from augment import HueJitter, HueRotation, RandomCrop, RandomFlip
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Flowers(Dataset):
    def __init__(self, count, transforms):
        rng = np.random.default_rng(3)
        self.labels = rng.integers(0, 17, count)
        centers = rng.random((17, 8, 8, 3), dtype=np.float32)
        base = centers.repeat(3, axis=1).repeat(3, axis=2)[self.labels]
        self.images = (0.6 * base + 0.4 * rng.random((count, 24, 24, 3))).astype(np.float32)
        self.transforms = transforms

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        for transform in self.transforms:
            image = transform(image)
        return torch.from_numpy(image.transpose(2, 0, 1).copy()), int(self.labels[index])


def block(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


class FlowerNet(pl.LightningModule):
    def __init__(self, lr=3e-3):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(
            block(3, 32, 1),
            block(32, 48, 2),
            block(48, 48, 1),
            block(48, 96, 2),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(96, 17),
        )

    def training_step(self, batch, batch_idx):
        images, labels = batch
        return nn.functional.cross_entropy(self.net(images), labels, label_smoothing=0.1)

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=self.lr, momentum=0.9)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
        return [optimizer], [schedule]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hue", choices=["hsv", "rotation"], default="hsv")
    parser.add_argument("--epochs", type=int, default=4)
    args = parser.parse_args()

    warnings.filterwarnings("ignore")
    pl.seed_everything(7)
    torch.set_num_threads(1)
    hue = HueJitter(0.08) if args.hue == "hsv" else HueRotation(0.08)
    loader = DataLoader(
        Flowers(1280, [RandomCrop(24, 3), RandomFlip(), hue]),
        batch_size=32,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
    )
    trainer = pl.Trainer(
        max_epochs=args.epochs,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    start = time.perf_counter()
    trainer.fit(FlowerNet(), loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
