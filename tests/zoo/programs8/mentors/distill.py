"""Distil a wide net into a narrow one."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


def convnet(width, classes=10):
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(32 * width, classes),
    )


class Images(Dataset):
    def __init__(self, count=384):
        g = torch.Generator().manual_seed(0)
        self.x = torch.rand(count, 3, 32, 32, generator=g)
        self.y = torch.randint(0, 10, (count,), generator=g)
        self.soft = None

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        soft = self.soft[i] if self.soft is not None else torch.empty(0)
        return self.x[i], self.y[i], soft


class Distiller:
    def __init__(self, teacher, student, data, temperature=4.0, alpha=0.7):
        self.teacher = teacher.eval().requires_grad_(False)
        self.student, self.data = student, data
        self.temperature, self.alpha = temperature, alpha
        self.optimizer = torch.optim.Adam(student.parameters(), lr=1e-3)

    @torch.no_grad()
    def teach(self, x):
        return F.softmax(self.teacher(x) / self.temperature, dim=1)

    def loss(self, x, y, soft):
        if soft.numel() == 0:
            soft = self.teach(x)
        logits = self.student(x)
        kl = F.kl_div(F.log_softmax(logits / self.temperature, dim=1), soft, reduction="batchmean")
        return self.alpha * self.temperature**2 * kl + (1 - self.alpha) * F.cross_entropy(logits, y)

    def fit(self, epochs, batch_size=32):
        loader = DataLoader(self.data, batch_size, shuffle=True)
        steps = 0
        for epoch in range(epochs):
            for batch in loader:
                loss = self.loss(*batch)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                steps += 1
            print(f"epoch {epoch} loss {loss.item():.4f}")
        return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--targets", default="online", choices=["online", "stored"])
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    distiller = Distiller(convnet(64), convnet(24), Images())
    start = time.perf_counter()
    if args.targets == "stored":
        parts = [distiller.teach(x) for x in distiller.data.x.split(32)]
        distiller.data.soft = torch.cat(parts)
    steps = distiller.fit(epochs=8)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
