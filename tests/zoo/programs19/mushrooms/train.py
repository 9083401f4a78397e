"""Edible or not: photographs of mushrooms, with torch."""

import io
import time

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

STEPS, BATCH, SIDE = 170, 16, 56


class Mushrooms(Dataset):
    def __init__(self):
        rng = np.random.default_rng(110)
        self.files = []
        for _ in range(64):
            small = rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)
            buffer = io.BytesIO()
            Image.fromarray(small).resize((64, 64), Image.BICUBIC).save(buffer, "JPEG")
            self.files.append(buffer.getvalue())

    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        image = Image.open(io.BytesIO(self.files[index % 64])).convert("RGB")
        pixels = np.array(image.crop((4, 4, 4 + SIDE, 4 + SIDE)))
        return torch.from_numpy(pixels).permute(2, 0, 1), index % 64 % 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.classify = nn.Linear(64, 2)

    def forward(self, x):
        return self.classify(self.features(x).mean(dim=(2, 3)))


def main():
    torch.manual_seed(110)
    torch.set_num_threads(1)
    loader = DataLoader(
        Mushrooms(), BATCH, shuffle=True, num_workers=2, prefetch_factor=4, persistent_workers=True
    )
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    begin = time.perf_counter()
    for images, labels in loader:
        logits = net(images.float().div_(255))
        loss = nn.functional.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    print(f"loss {loss.item():.3f}")
    print(f"trained {STEPS} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
