"""Tell circles, squares, crosses and rings apart; the pictures are drawn on the fly."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


class Shapes(Dataset):
    def __init__(self, count, size=64):
        self.count = count
        self.size = size
        self.ys, self.xs = np.mgrid[:size, :size].astype(np.float32)

    def __len__(self):
        return self.count

    def background(self, rng):
        picture = np.zeros((self.size, self.size), np.float32)
        for octave in (4, 8, 16):
            coarse = rng.random((octave, octave), np.float32)
            picture += np.kron(coarse, np.ones((self.size // octave,) * 2, np.float32)) / octave
        return picture

    def figure(self, rng, label):
        x, y = rng.uniform(20, self.size - 20, 2)
        r = rng.uniform(8, 16)
        dx, dy = np.abs(self.xs - x), np.abs(self.ys - y)
        if label == 0:
            inside = dx**2 + dy**2 < r**2
        elif label == 1:
            inside = np.maximum(dx, dy) < r
        elif label == 2:
            inside = (np.minimum(dx, dy) < r / 4) & (np.maximum(dx, dy) < r)
        else:
            inside = np.abs(np.sqrt(dx**2 + dy**2) - r) < r / 5
        return inside.astype(np.float32)

    def soften(self, picture):
        for axis in (0, 1):
            for _ in range(4):
                picture = (np.roll(picture, 1, axis) + 2 * picture + np.roll(picture, -1, axis)) / 4
        return picture

    def camera(self, rng, picture):
        picture = picture * rng.uniform(0.6, 1.4) + rng.uniform(-0.2, 0.2)
        picture = picture + rng.normal(0, 0.1, picture.shape)
        return (picture - picture.mean()) / (picture.std() + 1e-6)

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        label = index % 4
        picture = self.background(rng) + self.figure(rng, label)
        picture = self.camera(rng, self.soften(picture))
        return torch.from_numpy(picture.astype(np.float32))[None], label


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 5, stride=2, padding=2)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.conv3 = nn.Conv2d(24, 48, 3, padding=1)
        self.fc = nn.Linear(48, 4)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.conv3(x)).mean((2, 3))
        return self.fc(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=0)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        Shapes(1280),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        correct = 0
        for pictures, labels in loader:
            logits = model(pictures)
            loss = F.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            correct += (logits.argmax(1) == labels).sum().item()
            steps += 1
        print(f"epoch {epoch}: accuracy {correct / len(loader.dataset):.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
