import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

FRAMES = 96
BANDS = 40
PHONES = 30


class Utterances(L.LightningDataModule):
    def __init__(self, count=1024, batch_size=16):
        super().__init__()
        self.count = count
        self.batch_size = batch_size

    def setup(self, stage=None):
        generator = torch.Generator().manual_seed(8)
        phones = torch.randint(PHONES, (self.count, FRAMES // 4), generator=generator)
        shapes = torch.randn(PHONES, BANDS, generator=generator)
        frames = shapes[phones].repeat_interleave(4, dim=1)
        frames = frames + 0.7 * torch.randn(frames.shape, generator=generator)
        self.data = TensorDataset(frames, phones)

    def train_dataloader(self):
        return DataLoader(self.data, batch_size=self.batch_size, shuffle=True, drop_last=True)
