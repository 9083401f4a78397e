"""Flower or grass: image patches, a convolutional network, a usual training script."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Patches(Dataset):
    def __init__(self, count, seed, train):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 5, count)
        noise = rng.integers(0, 200, (count, 32, 32, 3))
        self.images = (noise + 10 * self.labels[:, None, None, None]).astype(np.uint8)
        self.train = train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.train and np.random.rand() < 0.5:
            image = image[:, ::-1]
        image = image.transpose(2, 0, 1).astype(np.float32) / 127.5 - 1.0
        return torch.from_numpy(image), int(self.labels[index])


class ResBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)

    def forward(self, x):
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(x + self.norm2(self.conv2(h)))


def build(width=48):
    return nn.Sequential(
        nn.Conv2d(3, width, 4, stride=2, padding=1),
        ResBlock(width),
        nn.MaxPool2d(2),
        ResBlock(width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(width, 5),
    )


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = total = 0
    for images, labels in loader:
        right += (model(images).argmax(1) == labels).sum().item()
        total += len(labels)
    model.train()
    return right / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=24)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    train_loader = DataLoader(
        Patches(1200, 1, True),
        args.batch_size,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
    )
    test_loader = DataLoader(Patches(192, 2, False), 64)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    total = args.epochs * len(train_loader)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=total)
    criterion = nn.CrossEntropyLoss()
    step = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for images, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            step += 1
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.4f}")
        print(f"epoch {epoch} accuracy {evaluate(model, test_loader):.3f}")
    torch.save(model.state_dict(), "model.pt")
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
