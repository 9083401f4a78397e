import time

import numpy as np
import torch
from augment import augment
from data import Patches
from torch import nn
from torch.utils.data import DataLoader


class PatchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Conv2d(32, 48, 3, padding=1, stride=2),
            nn.BatchNorm2d(48),
            nn.ReLU(),
        )
        self.head = nn.Linear(48 * 20 * 20, 5)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    loader = DataLoader(
        Patches(640), batch_size=16, shuffle=True, num_workers=1, persistent_workers=True
    )
    model = PatchNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()

    step = 0
    start = time.perf_counter()
    for _epoch in range(4):
        for pictures, labels in loader:
            pictures = torch.from_numpy(augment(pictures.numpy(), rng))
            loss = criterion(model(pictures), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
    print(f"loss {loss.item():.3f}")
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
