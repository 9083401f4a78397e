# galaxy morphology, small resnet
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(21)
torch.set_num_threads(1)


class Galaxies(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(21)
        self.x = rng.random((n, 3, 48, 48), dtype=np.float32)
        self.y = rng.integers(0, 4, n)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        k = np.random.randint(4)
        return torch.from_numpy(np.rot90(x, k, (1, 2)).copy()), int(self.y[i])


class Res(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return torch.relu(x + self.b(torch.relu(self.a(x))))


def main():
    loader = DataLoader(
        Galaxies(800), batch_size=32, shuffle=True, num_workers=1, persistent_workers=True
    )
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        Res(32),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3),
        Res(64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 4),
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    steps = 0
    start = time.perf_counter()
    for epoch in range(4):
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
            steps += 1
        print(f"epoch {epoch}: {running / len(loader):.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
