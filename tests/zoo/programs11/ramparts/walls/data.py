import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset


class Augment:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, image, mask):
        if torch.rand(()) < self.p:
            image, mask = image.flip(-1), mask.flip(-1)
        if torch.rand(()) < self.p:
            image = image * (0.8 + 0.4 * torch.rand(()))
        return image, mask


class Views(Dataset):
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(cfg.seed)
        coarse = torch.randint(0, cfg.classes, (cfg.views, 1, 8, 8), generator=g).float()
        self.masks = F.interpolate(coarse, size=cfg.side)[:, 0].long()
        noise = torch.randn(cfg.views, 3, cfg.side, cfg.side, generator=g)
        self.images = self.masks[:, None] / cfg.classes + 0.3 * noise
        self.augment = Augment()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.augment(self.images[i], self.masks[i])


def build_loader(cfg):
    return DataLoader(Views(cfg), batch_size=cfg.batch_size, shuffle=True, drop_last=True)
