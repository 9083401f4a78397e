"""Queen present or absent? A small network on hive recordings."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class HiveClips(Dataset):
    """Half a second of sound, as a normalised log spectrogram with some hiss added."""

    def __init__(self, clips=1800, samples=12288, seed=3):
        rng = np.random.default_rng(seed)
        self.hum = rng.standard_normal((64, samples + 2048)).astype(np.float32)
        self.gain = rng.uniform(0.4, 1.6, clips).astype(np.float32)
        self.labels = rng.integers(0, 2, clips)
        self.window = np.hanning(512).astype(np.float32)
        self.samples = samples

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        start = int(rng.integers(0, 2048))
        wave = self.hum[index % 64, start : start + self.samples] * self.gain[index]
        wave = wave + 0.05 * rng.standard_normal(self.samples, dtype=np.float32)
        if self.labels[index]:
            wave = wave + np.sin(np.arange(self.samples, dtype=np.float32) * 0.17)
        frames = np.lib.stride_tricks.sliding_window_view(wave, 512)[::64] * self.window
        spectrum = np.abs(np.fft.rfft(frames, axis=1))[:, :128]
        image = np.log1p(spectrum).astype(np.float32).T
        image = (image - image.mean()) / (image.std() + 1e-5)
        return torch.from_numpy(image[None, :, :80].copy()), int(self.labels[index])


def network():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 2),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=20)
    parser.add_argument("--num-workers", type=int, default=0)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(
        HiveClips(),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.num_workers,
        persistent_workers=args.num_workers > 0,
    )
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.CrossEntropyLoss()

    steps = 0
    began = time.perf_counter()
    for epoch in range(args.epochs):
        total = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += 1
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - began:.3f} s")


if __name__ == "__main__":
    main()
