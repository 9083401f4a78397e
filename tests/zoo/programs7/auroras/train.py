import argparse
import pathlib
import time
from concurrent.futures import ThreadPoolExecutor

import bucket
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Frames(Dataset):
    def __init__(self, keys, source):
        self.keys = keys
        self.source = source

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, i):
        raw = np.frombuffer(self.source.get(self.keys[i]), np.uint8).reshape(bucket.SHAPE)
        return torch.from_numpy(raw.astype(np.float32) / 255), self.keys[i] % 4


class Folder:
    def __init__(self, root):
        self.root = pathlib.Path(root)

    def get(self, key):
        return (self.root / f"{key}.raw").read_bytes()

    def fill(self, keys, port):
        self.root.mkdir(exist_ok=True)

        def copy(part):
            remote = bucket.Bucket(port)
            for key in part:
                (self.root / f"{key}.raw").write_bytes(remote.get(key))

        with ThreadPoolExecutor(12) as pool:
            list(pool.map(copy, (keys[i::12] for i in range(12))))


class SkyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, stride=2, padding=1),
            nn.GELU(),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.GELU(),
            nn.MaxPool2d(2),
            nn.Conv2d(64, 64, 3, padding=1),
            nn.GELU(),
        )
        self.classify = nn.Linear(64, 4)

    def forward(self, x):
        return self.classify(self.features(x).mean((-1, -2)))


def train(loader, epochs):
    model = SkyNet()
    opt = torch.optim.Adam(model.parameters(), 1e-3)
    steps = 0
    for epoch in range(epochs):
        running = 0.0
        for frames, kinds in loader:
            loss = nn.functional.cross_entropy(model(frames), kinds)
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
            steps += 1
        print("epoch", epoch, "loss", round(running / len(loader), 4))
    return steps


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--stage", metavar="DIR", help="copy the frames here before training")
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(2)
    process, port = bucket.start()
    keys = list(range(960))
    source = bucket.Bucket(port)
    if a.stage:
        source = Folder(a.stage)
        source.fill(keys, port)
    loader = DataLoader(
        Frames(keys, source), 16, shuffle=True, num_workers=2, persistent_workers=True
    )
    clock = time.perf_counter()
    steps = train(loader, a.epochs)
    seconds = time.perf_counter() - clock
    process.terminate()
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
