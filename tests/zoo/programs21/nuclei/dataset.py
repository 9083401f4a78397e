import numpy as np
import torch
from torch.utils.data import Dataset


def synth_slide(rng, size):
    ys, xs = np.mgrid[:size, :size]
    mask = np.zeros((size, size), bool)
    for _ in range(size // 6):
        y, x = rng.uniform(0, size, 2)
        a, b = rng.uniform(4, 9, 2)
        mask |= ((ys - y) / a) ** 2 + ((xs - x) / b) ** 2 < 1
    tissue = rng.normal(0, 0.3, (3, size, size)) + np.array([0.8, 0.4, 0.7])[:, None, None]
    tissue -= mask * np.array([0.4, 0.1, 0.2])[:, None, None]
    return tissue.astype(np.float32), mask.astype(np.float32)


class Slides(Dataset):
    def __init__(self, n, size=160, crop=64, seed=0, augment=True):
        rng = np.random.default_rng(seed)
        self.slides = [synth_slide(rng, size) for _ in range(n)]
        self.crop = crop
        self.augment = augment
        self.per_slide = 16

    def __len__(self):
        return len(self.slides) * self.per_slide

    def __getitem__(self, i):
        image, mask = self.slides[i // self.per_slide]
        if self.augment:
            y, x = torch.randint(image.shape[1] - self.crop, (2,)).tolist()
        else:
            y, x = divmod(i % self.per_slide, 4)
            y, x = y * 24, x * 24
        image = image[:, y : y + self.crop, x : x + self.crop]
        mask = mask[y : y + self.crop, x : x + self.crop]
        if self.augment and i % 2:
            image, mask = image[:, :, ::-1], mask[:, ::-1]
        return torch.from_numpy(image.copy()), torch.from_numpy(mask.copy())
