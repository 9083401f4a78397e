"""Which bird is it? A recurrent net on log-mel frames."""

import argparse
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

from features import log_mel

SPECIES = 12


class Listener(nn.Module):
    def __init__(self, bands=40, hidden=96):
        super().__init__()
        self.rnn = nn.GRU(bands, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, SPECIES)

    def forward(self, mel):
        return self.head(self.rnn(mel)[0].mean(1))


def make_clips(count=240, samples=8000):
    rng = np.random.default_rng(0)
    species = rng.integers(0, SPECIES, count)
    t = np.arange(samples) / 8000
    pitch = 300 + 250 * species[:, None] + 60 * np.sin(2 * np.pi * 6 * t)[None]
    clips = np.sin(2 * np.pi * np.cumsum(pitch, 1) / 8000) + rng.normal(0, 0.3, (count, samples))
    return clips.astype(np.float32), species


def train_epoch(model, loader, optimizer, ready):
    for clips, species in loader:
        if ready:
            mel = clips
        else:
            mel = torch.from_numpy(np.stack([log_mel(clip) for clip in clips.numpy()]))
        loss = nn.functional.cross_entropy(model(mel), species)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--input", default="wave", choices=["wave", "mel"])
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    clips, species = make_clips()
    if args.input == "mel":
        clips = np.stack([log_mel(clip) for clip in clips])
    data = TensorDataset(torch.from_numpy(clips), torch.from_numpy(species))
    loader = DataLoader(data, batch_size=16, shuffle=True)
    model = Listener()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    start = time.perf_counter()
    for epoch in range(6):
        loss = train_epoch(model, loader, optimizer, args.input == "mel")
        print(f"epoch {epoch:02d} | loss {loss:.4f}")
    print(f"trained {6 * len(loader)} steps in {time.perf_counter() - start:.3f} s")
