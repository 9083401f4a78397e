import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

import store


@dataclass
class Config:
    scans: int = 840
    batch_size: int = 12
    epochs: int = 2
    lr: float = 2e-4
    channels: int = 16


class Scans(Dataset):
    def __init__(self, client, count):
        self.client = client
        self.count = count

    def __len__(self):
        return self.count

    @staticmethod
    def to_tensors(scan):
        frames = torch.from_numpy(scan.astype(np.float32) / 255.0)
        return frames[:12], frames[12:]

    def __getitem__(self, index):
        return self.to_tensors(self.client.get([index])[0])


class ScansInBulk(Scans):
    def __getitems__(self, indices):
        return [self.to_tensors(scan) for scan in self.client.get(indices)]


class Nowcaster(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(12, channels, 3, padding=1), nn.SiLU(), nn.Conv2d(channels, 32, 3, 2, 1)
        )
        self.middle = nn.Sequential(nn.SiLU(), nn.Conv2d(32, 32, 3, padding=1), nn.SiLU())
        self.decoder = nn.ConvTranspose2d(32, 4, 2, stride=2)

    def forward(self, past):
        return self.decoder(self.middle(self.encoder(past)))


def fit(config, dataset):
    loader = DataLoader(
        dataset, config.batch_size, shuffle=True, num_workers=1, persistent_workers=True
    )
    model = Nowcaster(config.channels)
    optimizer = torch.optim.AdamW(model.parameters(), config.lr)
    steps = 0
    for epoch in range(config.epochs):
        for past, future in loader:
            loss = (model(past) - future).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch + 1}/{config.epochs} mae={loss.item():.4f}")
    return steps


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bulk", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = Config()
    server, port = store.start()
    dataset = (ScansInBulk if args.bulk else Scans)(store.Client(port), config.scans)
    start = time.perf_counter()
    steps = fit(config, dataset)
    seconds = time.perf_counter() - start
    server.terminate()
    server.join()
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
