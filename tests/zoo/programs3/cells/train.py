"""Segment cells; the pictures are flipped and lit anew by two workers."""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from unet import UNet


class Cells(Dataset):
    def __init__(self, count, side=64, seed=0):
        rng = np.random.default_rng(seed)
        axis = np.arange(side)
        self.masks = np.zeros((count, side, side), np.float32)
        for mask in self.masks:
            for cy, cx, radius in rng.uniform((5, 5, 4), (side - 5, side - 5, 9), (7, 3)):
                mask[(axis[:, None] - cy) ** 2 + (axis - cx) ** 2 < radius**2] = 1
        noise = rng.standard_normal(self.masks.shape, dtype=np.float32)
        self.pictures = 0.6 * self.masks + 0.3 * noise

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, index):
        picture, mask = self.pictures[index], self.masks[index]
        if np.random.random() < 0.5:
            picture, mask = picture[::-1], mask[::-1]
        picture = picture * np.float32(np.random.uniform(0.8, 1.2))
        return picture[None].copy(), mask[None].copy()


def dice(logits, masks):
    p = logits.sigmoid()
    return 1 - 2 * (p * masks).sum() / (p.sum() + masks.sum() + 1)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    losses = [dice(model(x), y).item() for x, y in loader]
    model.train()
    return sum(losses) / len(losses)


def main():
    torch.manual_seed(0)
    np.random.seed(0)
    torch.set_num_threads(1)
    train = DataLoader(
        Cells(400), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True
    )
    held = DataLoader(Cells(64, seed=1), batch_size=16)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    steps = 0
    begin = time.perf_counter()
    for epoch in range(3):
        for x, y in train:
            logits = model(x)
            loss = F.binary_cross_entropy_with_logits(logits, y) + dice(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: held out {validate(model, held):.4f}")
        torch.save({"model": model.state_dict(), "epoch": epoch}, "last.pt")
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
