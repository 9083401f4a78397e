"""Tell whale calls apart; the clips lie in an archive on another machine."""

import argparse
import os
import subprocess
import sys
import time
import urllib.request

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

from archive import CLIP

HERE = os.path.dirname(os.path.abspath(__file__))


class RemoteClips(Dataset):
    def __init__(self, url, count, mirror=None):
        self.url, self.count, self.mirror = url, count, mirror
        if mirror:
            os.makedirs(mirror, exist_ok=True)
            clips = np.frombuffer(self.get(0, count), np.float32).reshape(count, CLIP)
            for i, clip in enumerate(clips):
                clip.tofile(os.path.join(mirror, f"{i}.f32"))

    def get(self, first, last):
        with urllib.request.urlopen(f"{self.url}/{first}-{last}") as response:
            return response.read()

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self.mirror:
            clip = np.fromfile(os.path.join(self.mirror, f"{index}.f32"), np.float32)
        else:
            clip = np.frombuffer(self.get(index, index + 1), np.float32)
        return torch.from_numpy(clip.copy())[None], index % 5


def build_model():
    return nn.Sequential(
        nn.Conv1d(1, 32, 15, stride=2, padding=7),
        nn.GELU(),
        nn.Conv1d(32, 64, 9, stride=4, padding=4),
        nn.GELU(),
        nn.Conv1d(64, 64, 9, stride=2, padding=4),
        nn.GELU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(64, 5),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mirror", default=None)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    archive = subprocess.Popen(
        [sys.executable, os.path.join(HERE, "archive.py")], stdout=subprocess.PIPE, text=True
    )
    try:
        url = f"http://127.0.0.1:{int(archive.stdout.readline())}"
        loader = DataLoader(RemoteClips(url, 256, args.mirror), batch_size=16, shuffle=True)
        model = build_model()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
        loss_fn = nn.CrossEntropyLoss()
        start, steps = time.perf_counter(), 0
        for epoch in range(4):
            for clips, species in loader:
                loss = loss_fn(model(clips), species)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                steps += 1
            print(f"epoch {epoch}: loss {loss.item():.3f}")
        seconds = time.perf_counter() - start
    finally:
        archive.terminate()
        archive.wait()
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
