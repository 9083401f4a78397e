import time
from argparse import ArgumentParser

import torch
from torch import nn
from torch.utils.data import DataLoader

from songs import LogSpectrogram, Songs


class SongNet(nn.Module):
    def __init__(self, birds=12):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(64, 176, 5, stride=2, padding=2),
            nn.GELU(),
            nn.Conv1d(176, 176, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv1d(176, 176, 3, padding=1),
            nn.GELU(),
        )
        self.head = nn.Linear(176, birds)

    def forward(self, x):
        return self.head(self.body(x).mean(-1))


class Session:
    def __init__(self, args):
        self.spectrogram = LogSpectrogram()
        self.in_dataset = args.spectrogram_in_dataset
        dataset = Songs(
            args.batches * args.batch_size, self.spectrogram if self.in_dataset else None
        )
        self.loader = DataLoader(dataset, args.batch_size, shuffle=True, num_workers=1)
        self.model = SongNet()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.steps = 0

    def prepare(self, waves):
        return torch.stack([self.spectrogram(wave) for wave in waves])

    def train_epoch(self):
        for x, y in self.loader:
            if not self.in_dataset:
                x = self.prepare(x)
            loss = nn.functional.cross_entropy(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.steps += 1
            if self.steps % 50 == 0:
                print(f"step {self.steps} loss {loss:.3f}")


if __name__ == "__main__":
    parser = ArgumentParser()
    parser.add_argument("--batches", type=int, default=150)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--spectrogram-in-dataset", action="store_true")
    torch.set_num_threads(1)
    torch.manual_seed(8)
    session = Session(parser.parse_args())
    start = time.perf_counter()
    session.train_epoch()
    print(f"trained {session.steps} steps in {time.perf_counter() - start:.3f} s")
