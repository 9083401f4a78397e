import torch
from torch.utils.data import DataLoader, Dataset

from .features import LogMel


def synthesize(cfg):
    g = torch.Generator().manual_seed(cfg.seed)
    labels = torch.randint(0, cfg.n_species, (cfg.n_clips,), generator=g)
    t = torch.arange(cfg.sample_rate) / cfg.sample_rate
    pitch = 300.0 + 220.0 * labels.float()
    waves = torch.sin(2 * torch.pi * pitch[:, None] * t)
    waves += 0.3 * torch.randn(waves.shape, generator=g)
    return waves, labels


class Clips(Dataset):
    def __init__(self, cfg):
        self.waves, self.labels = synthesize(cfg)
        self.features = LogMel(cfg)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.features(self.waves[i]), self.labels[i]


def build_loader(cfg):
    return DataLoader(Clips(cfg), batch_size=cfg.batch_size, shuffle=True, drop_last=True)
