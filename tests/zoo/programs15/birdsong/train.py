# bird calls, 1 s clips at 8 kHz; log-spectrogram CNN
import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset, default_collate

torch.manual_seed(4)
np.random.seed(4)
torch.set_num_threads(1)


class Calls(Dataset):
    def __init__(self, n=800):
        rng = np.random.default_rng(4)
        self.f = rng.uniform(300, 3000, n)
        self.t = np.arange(8000) / 8000

    def __len__(self):
        return len(self.f)

    def __getitem__(self, i):
        return np.sin(2 * np.pi * self.f[i] * self.t).astype(np.float32), int(self.f[i] // 300) % 9


def perturb(wav):
    wav = wav.numpy()
    n = wav.shape[1]
    out = np.empty_like(wav)
    for k in range(len(wav)):
        speed = np.random.uniform(0.9, 1.1)
        stretched = np.interp(np.clip(np.arange(n) * speed, 0, n - 1), np.arange(n), wav[k])
        noise = np.random.randn(n) * np.random.uniform(0.001, 0.05)
        room = np.exp(-np.arange(100) / np.random.uniform(5, 25)) * np.random.randn(100) * 0.1
        room[0] = 1.0
        out[k] = np.roll(np.convolve(stretched, room)[:n] + noise, np.random.randint(n))
    return torch.from_numpy(out)


def collate_perturbed(samples):
    wav, y = default_collate(samples)
    return perturb(wav), y


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(256))
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 40, 3),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(40, 9),
        )

    def forward(self, wav):
        s = torch.stft(wav, 256, hop_length=128, window=self.window, return_complex=True).abs()
        return self.net(torch.log1p(s).unsqueeze(1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--perturb", choices=["loop", "collate"], default="loop")
    args = parser.parse_args()
    loader = DataLoader(
        Calls(),
        batch_size=32,
        shuffle=True,
        num_workers=2,
        persistent_workers=True,
        collate_fn=collate_perturbed if args.perturb == "collate" else None,
    )
    model = Spectral()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    loss_fn = nn.CrossEntropyLoss()
    step = 0
    start = time.perf_counter()
    for epoch in range(4):
        for wav, y in loader:
            if args.perturb == "loop":
                wav = perturb(wav)
            loss = loss_fn(model(wav), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
        print("epoch", epoch, "loss", loss.item())
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
