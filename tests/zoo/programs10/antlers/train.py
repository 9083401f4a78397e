"""Counts and sizes deer in trail-camera pictures, annotated with boxes."""

import argparse
import random
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class TrailCamera(Dataset):
    def __init__(self, count, seed=0):
        generator = torch.Generator().manual_seed(seed)
        rng = random.Random(seed)
        self.pictures = torch.rand(count, 3, 32, 32, generator=generator)
        self.boxes = [
            [
                [rng.random() for _ in range(5)] + [float(rng.randrange(4))]
                for _ in range(rng.randint(25, 55))
            ]
            for _ in range(count)
        ]

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        return self.pictures[index], self.boxes[index]


def collate_each(samples):
    pictures = torch.stack([picture for picture, _ in samples])
    longest = max(len(boxes) for _, boxes in samples)
    targets = torch.zeros(len(samples), longest, 6)
    mask = torch.zeros(len(samples), longest)
    for i, (_, boxes) in enumerate(samples):
        for j, box in enumerate(boxes):
            mask[i, j] = 1.0
            for k, value in enumerate(box):
                targets[i, j, k] = value
    return pictures, targets, mask


def collate_padded(samples):
    pictures = torch.stack([picture for picture, _ in samples])
    targets = pad_sequence([torch.tensor(boxes) for _, boxes in samples], batch_first=True)
    counts = torch.tensor([len(boxes) for _, boxes in samples])
    mask = (torch.arange(targets.shape[1]) < counts[:, None]).float()
    return pictures, targets, mask


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 48, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(48, 64, 3, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(64, 7)

    def forward(self, pictures):
        return self.head(self.body(pictures))


def detection_loss(predicted, targets, mask):
    count = mask.sum(dim=1)
    mean_box = (targets * mask[..., None]).sum(dim=1) / count[:, None]
    wanted = torch.cat([mean_box, count[:, None] / 50], dim=1)
    return nn.functional.smooth_l1_loss(predicted, wanted)


def train_one_epoch(model, loader, optimizer):
    model.train()
    total, batches = 0.0, 0
    for pictures, targets, mask in loader:
        loss = detection_loss(model(pictures), targets, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        batches += 1
    return total / batches, batches


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--collate", choices=["each", "padded"], default="each")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(1)
    collate = collate_each if args.collate == "each" else collate_padded
    loader = DataLoader(
        TrailCamera(480), batch_size=args.batch_size, shuffle=True, collate_fn=collate
    )
    model = Detector()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    steps = 0
    started = time.perf_counter()
    for epoch in range(args.epochs):
        loss, batches = train_one_epoch(model, loader, optimizer)
        steps += batches
        print(f"epoch {epoch}: loss {loss:.5f}")
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
