import io
import random

import numpy as np
import torch
from PIL import Image, ImageEnhance
from torch.utils.data import Dataset

KINDS = 6


def make_photos(count, size, seed):
    rng = np.random.default_rng(seed)
    photos = []
    for index in range(count):
        coarse = rng.integers(0, 256, (size // 8, size // 8, 3), dtype=np.uint8)
        coarse[..., 0] = coarse[..., 0] // 2 + 20 * (index % KINDS)
        file = io.BytesIO()
        Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC).save(
            file, "JPEG", quality=85
        )
        photos.append(file.getvalue())
    return photos


class Mushrooms(Dataset):
    def __init__(self, photos, count):
        self.photos = photos
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        index = index % len(self.photos)
        image = Image.open(io.BytesIO(self.photos[index])).convert("RGB")
        image = self.crop(image)
        image = self.jitter(image)
        pixels = np.asarray(image.resize((32, 32), Image.Resampling.BICUBIC), dtype=np.float32)
        pixels = (pixels / 255 - 0.5) / 0.25
        return {
            "pixel_values": torch.from_numpy(pixels.transpose(2, 0, 1).copy()),
            "labels": index % KINDS,
        }

    def crop(self, image):
        edge = int(image.width * random.uniform(0.7, 1.0))
        left = random.randint(0, image.width - edge)
        top = random.randint(0, image.height - edge)
        image = image.rotate(random.uniform(-15, 15), Image.Resampling.BILINEAR)
        return image.crop((left, top, left + edge, top + edge))

    def jitter(self, image):
        for enhance in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
            image = enhance(image).enhance(random.uniform(0.8, 1.2))
        return image
