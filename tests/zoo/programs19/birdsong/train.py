"""Bird calls: log spectrograms of short recordings, a small convolutional classifier."""

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    species: int = 12
    samples: int = 8192
    frame: int = 256
    hop: int = 128
    batch: int = 32
    steps: int = 75
    denoise: str = "frames"


def spectrogram(wave, cfg):
    frames = sliding_window_view(wave, cfg.frame)[:: cfg.hop]
    return np.abs(np.fft.rfft(frames * np.hanning(cfg.frame), axis=1))[:, 1:]


def local_floor_frames(power, reach=4):
    """Quietest neighbour in time, for each frame and band."""
    padded = np.pad(power, ((reach, reach), (0, 0)), mode="edge")
    floor = np.empty_like(power)
    for frame in range(power.shape[0]):
        window = padded[frame : frame + 2 * reach + 1]
        for band in range(0, power.shape[1], 4):
            floor[frame, band : band + 4] = window[:, band : band + 4].min(axis=0)
    return floor


def local_floor_windows(power, reach=4):
    """Quietest neighbour in time, for each frame and band."""
    padded = np.pad(power, ((reach, reach), (0, 0)), mode="edge")
    floor = padded[: power.shape[0]].copy()
    for shift in range(1, 2 * reach + 1):
        np.minimum(floor, padded[shift : shift + power.shape[0]], out=floor)
    return floor


FLOORS = {"frames": local_floor_frames, "windows": local_floor_windows}


class Calls(Dataset):
    def __init__(self, cfg):
        rng = np.random.default_rng(11)
        self.cfg = cfg
        self.floor = FLOORS[cfg.denoise]
        self.labels = rng.integers(0, cfg.species, 256)
        t = np.arange(cfg.samples, dtype=np.float32) / 8000.0
        pitch = 400.0 + 250.0 * self.labels[:, None]
        self.waves = np.sin(2 * np.pi * pitch * t * (1 + 0.1 * t)).astype(np.float32)
        self.waves += 0.3 * rng.standard_normal(self.waves.shape, dtype=np.float32)

    def __len__(self):
        return self.cfg.batch * self.cfg.steps

    def __getitem__(self, index):
        index %= len(self.waves)
        power = spectrogram(self.waves[index], self.cfg).astype(np.float32)
        clean = np.log1p(power - self.floor(power))
        return torch.from_numpy(clean)[None], int(self.labels[index])


def build(cfg):
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(16, 48, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(48, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, cfg.species),
    )


def run(cfg):
    torch.manual_seed(11)
    torch.set_num_threads(1)
    loader = DataLoader(Calls(cfg), cfg.batch, shuffle=True, num_workers=1)
    net = build(cfg)
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    begin = time.perf_counter()
    for spectra, labels in loader:
        loss = criterion(net(spectra), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.perf_counter() - begin
    print(f"last loss {loss.item():.3f}")
    print(f"trained {cfg.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--denoise", choices=sorted(FLOORS), default="frames")
    run(Settings(denoise=parser.parse_args().denoise))
