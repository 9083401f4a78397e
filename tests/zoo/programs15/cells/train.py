# nuclei segmentation, dice over the whole epoch
import argparse
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(15)
torch.set_num_threads(1)
CLASSES = 2  # nucleus, border


class Seg(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(1, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(24, 32, 3, padding=1),
            nn.ReLU(),
        )
        self.up = nn.Sequential(
            nn.ConvTranspose2d(32, 16, 2, stride=2), nn.ReLU(), nn.Conv2d(16, CLASSES, 3, padding=1)
        )

    def forward(self, x):
        return self.up(self.down(x))


def dice(p, t):
    return 2 * (p * t).sum() / (p.sum() + t.sum() + 1e-6)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dice", choices=["epoch", "running"], default="epoch")
    args = parser.parse_args()
    images = torch.rand(1440, 1, 64, 64)
    masks = (torch.rand(1440, CLASSES, 64, 64) > 0.7).float()
    loader = DataLoader(TensorDataset(images, masks), batch_size=16, shuffle=True)
    model = Seg()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    bce = nn.BCEWithLogitsLoss()
    steps = 0
    inter = total = 0.0
    all_preds = torch.empty(0, CLASSES, 64, 64)
    all_masks = torch.empty(0, CLASSES, 64, 64)
    start = time.perf_counter()
    for x, y in loader:
        logits = model(x)
        loss = bce(logits, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        p = torch.sigmoid(logits)
        if args.dice == "epoch":
            all_preds = torch.cat([all_preds, p])
            all_masks = torch.cat([all_masks, y])
            score = dice(all_preds, all_masks)
        else:
            p = p.detach()
            inter += 2 * (p * y).sum().item()
            total += (p.sum() + y.sum()).item()
            score = inter / total
        steps += 1
        if steps % 20 == 0:
            print(f"step {steps} loss {loss.item():.4f} dice {float(score):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
