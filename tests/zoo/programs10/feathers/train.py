"""Recognises birds by a picture of a single feather."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = 8


def augment(picture, rng):
    picture = picture.astype(np.float32) / 255
    if rng.random() < 0.5:
        picture = picture[:, :, ::-1]
    picture = np.roll(picture, rng.integers(-4, 5, size=2), axis=(1, 2))
    picture = picture ** rng.uniform(0.7, 1.4)
    picture = picture + 0.05 * rng.standard_normal(picture.shape, dtype=np.float32)
    mean, std = picture.mean(axis=(1, 2), keepdims=True), picture.std(axis=(1, 2), keepdims=True)
    return ((picture - mean) / (std + 1e-5)).astype(np.float32)


class Feathers(Dataset):
    def __init__(self, count, augmented):
        rng = np.random.default_rng(21)
        self.labels = rng.integers(0, CLASSES, count)
        shade = (20 * self.labels).astype(np.uint8)[:, None, None, None]
        self.pictures = rng.integers(0, 100, (count, 3, 56, 56), dtype=np.uint8) + shade
        self.rng = np.random.default_rng(22)
        self.augmented = augmented

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if self.augmented:
            picture = augment(picture, self.rng)
        return torch.from_numpy(picture), int(self.labels[index])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(16, 24, 3, padding=1)
        self.conv3 = nn.Conv2d(24, 48, 3, stride=2, padding=1)
        self.out = nn.Linear(48, CLASSES)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        x = torch.relu(self.conv3(x))
        return self.out(x.mean(dim=(2, 3)))


def run(args):
    loader = DataLoader(
        Feathers(1280, args.augment == "dataset"),
        batch_size=32,
        shuffle=True,
        num_workers=1,
        persistent_workers=True,
    )
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    rng = np.random.default_rng(23)
    steps = 0
    for epoch in range(args.epochs):
        right = 0
        for pictures, labels in loader:
            if args.augment == "loop":
                pictures = torch.from_numpy(
                    np.stack([augment(picture, rng) for picture in pictures.numpy()])
                )
            scores = model(pictures)
            loss = nn.functional.cross_entropy(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(dim=1) == labels).sum().item()
            steps += 1
        print(f"epoch {epoch}: accuracy {right / len(loader.dataset):.3f}")
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--augment", choices=["loop", "dataset"], default="loop")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(20)
    started = time.perf_counter()
    steps = run(args)
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
