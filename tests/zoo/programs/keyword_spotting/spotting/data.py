import lightning.pytorch as pl
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from spotting import audio


class Words(Dataset):
    def __init__(self, count, classes=8):
        self.count = count
        self.classes = classes
        self.mel = audio.mel_matrix(129, 40)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        word = index % self.classes
        wave = audio.synthesize(rng, word)
        wave = audio.change_speed(wave, rng.uniform(0.85, 1.15))
        wave = audio.add_room(wave, rng)
        picture = audio.log_mel(wave, self.mel)
        return torch.from_numpy(picture.astype(np.float32)), word


class WordsModule(pl.LightningDataModule):
    def __init__(self, batch_size, num_workers):
        super().__init__()
        self.batch_size = batch_size
        self.num_workers = num_workers

    def setup(self, stage=None):
        self.train_set = Words(960)

    def train_dataloader(self):
        return DataLoader(
            self.train_set,
            batch_size=self.batch_size,
            shuffle=True,
            num_workers=self.num_workers,
            persistent_workers=self.num_workers > 0,
        )
