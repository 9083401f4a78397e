import numpy as np
import torch
from lightning import LightningDataModule
from torch.utils.data import DataLoader, Dataset

HEIGHT, WIDTH, BLOCK = 48, 160, 4


def threshold_by_block(image):
    out = np.zeros_like(image)
    for top in range(0, HEIGHT, BLOCK):
        for left in range(0, WIDTH, BLOCK):
            tile = image[top : top + BLOCK, left : left + BLOCK]
            out[top : top + BLOCK, left : left + BLOCK] = tile > tile.mean() - 0.02
    return out


def threshold(image):
    tiles = image.reshape(HEIGHT // BLOCK, BLOCK, WIDTH // BLOCK, BLOCK)
    level = tiles.mean(axis=(1, 3), keepdims=True) - 0.02
    return (tiles > level).astype(image.dtype).reshape(HEIGHT, WIDTH)


class ReceiptLines(Dataset):
    def __init__(self, count, binarize, seed=3):
        rng = np.random.default_rng(seed)
        self.images = rng.integers(0, 256, (count, HEIGHT, WIDTH), dtype=np.uint8)
        self.totals = rng.integers(0, 10, count)
        self.binarize = binarize

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = self.images[index].astype(np.float32) / 255.0
        image = self.binarize(image)
        image = np.roll(image, np.random.randint(-3, 4), axis=1)
        return torch.from_numpy(image)[None], int(self.totals[index])


class Receipts(LightningDataModule):
    def __init__(self, binarize, batch_size=16, batches=140):
        super().__init__()
        self.batch_size = batch_size
        self.dataset = ReceiptLines(batch_size * batches, binarize)

    def train_dataloader(self):
        return DataLoader(
            self.dataset,
            batch_size=self.batch_size,
            shuffle=True,
            num_workers=1,
            persistent_workers=True,
        )
