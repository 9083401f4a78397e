"""Pictures through workers, a look at the validation set after each epoch, one checkpoint."""

import argparse
import logging
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

log = logging.getLogger("train")


class Pictures(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, count)
        self.pictures = rng.integers(0, 255, (count, 3, 32, 32), dtype=np.uint8)
        self.pictures[:, 0] += self.labels[:, None, None].astype(np.uint8) * 8

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.pictures[index].astype(np.float32) / 255 - 0.5
        if index % 2:
            picture = picture[:, :, ::-1].copy()
        return torch.from_numpy(picture), int(self.labels[index])


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(3, 32), Block(32, 64), Block(64, 128))
        self.head = nn.Linear(128, 4)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


@torch.inference_mode()
def validate(model, loader):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_loader = DataLoader(
        Pictures(1920, 0),
        batch_size=32,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
        prefetch_factor=4,
    )
    val_loader = DataLoader(Pictures(128, 1), batch_size=64)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in train_loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        scheduler.step()
        log.info("epoch %d: accuracy %.3f", epoch, validate(model, val_loader))
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")
    torch.save(model.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
