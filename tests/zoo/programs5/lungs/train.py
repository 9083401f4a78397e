"""Lungs on X-rays: segmentation with a dice loss, averaged weights, TensorBoard each 40 steps."""

import copy
import time

import torch
from torch import nn
from torch.utils.tensorboard import SummaryWriter


class UNet(nn.Module):
    def __init__(self, w=24):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(1, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU())
        self.b = nn.Sequential(nn.Conv2d(w, 2 * w, 3, 2, 1), nn.BatchNorm2d(2 * w), nn.ReLU())
        self.c = nn.Sequential(
            nn.Conv2d(2 * w, 2 * w, 3, padding=1), nn.BatchNorm2d(2 * w), nn.ReLU()
        )
        self.up = nn.ConvTranspose2d(2 * w, w, 2, 2)
        self.out = nn.Conv2d(2 * w, 1, 1)

    def forward(self, x):
        a = self.a(x)
        return self.out(torch.cat([a, self.up(self.c(self.b(a)))], 1))


def dice(scores, mask):
    p = scores.sigmoid()
    both = (p * mask).sum((1, 2, 3))
    return 1 - ((2 * both + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)).mean()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    y, x = torch.meshgrid(torch.linspace(-1, 1, 64), torch.linspace(-1, 1, 64), indexing="ij")
    size = 0.3 + 0.2 * torch.rand(300, 1, 1)
    mask = ((x.abs() - 0.45) ** 2 + 0.4 * y**2 < size**2 / 2).float()[:, None]
    rays = mask + 0.8 * torch.randn_like(mask)
    model = UNet()
    average = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    writer, start = SummaryWriter("tb"), time.perf_counter()
    for step in range(160):
        pick = torch.randint(len(rays), (8,))
        scores = model(rays[pick])
        loss = dice(scores, mask[pick])
        loss = loss + nn.functional.binary_cross_entropy_with_logits(scores, mask[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 0.01)
        if step % 40 == 0:
            writer.add_scalar("loss", loss.item(), step)
            writer.add_image("mask", scores[0].sigmoid(), step)
    writer.close()
    print(f"trained 160 steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
