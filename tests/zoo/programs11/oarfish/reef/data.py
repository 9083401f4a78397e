from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


def write_frames(cfg, classes, seed):
    rng = np.random.default_rng(seed)
    root = Path(cfg.root)
    root.mkdir(exist_ok=True)
    for i in range(cfg.frames):
        coarse = rng.integers(0, 256, (24, 24, 3), dtype=np.uint8)
        coarse[..., 0] = coarse[..., 0] // 2 + 12 * (i % classes)
        frame = Image.fromarray(coarse).resize((cfg.side, cfg.side), Image.Resampling.BICUBIC)
        frame.save(root / f"{i:04d}_{i % classes}.jpg", quality=92)


class Frames(Dataset):
    def __init__(self, cfg):
        self.paths = sorted(Path(cfg.root).glob("*.jpg"))
        self.crop = cfg.crop

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        path = self.paths[i]
        with Image.open(path) as image:
            image = image.convert("RGB").resize((self.crop, self.crop), Image.Resampling.BILINEAR)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div_(255.0)
        if torch.rand(()) < 0.5:
            pixels = pixels.flip(2)
        return pixels, int(path.stem.rsplit("_", 1)[1])


def build_loader(cfg):
    return DataLoader(
        Frames(cfg),
        batch_size=cfg.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=cfg.workers,
        persistent_workers=cfg.workers > 0,
    )
