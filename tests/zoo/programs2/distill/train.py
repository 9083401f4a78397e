"""Distil a teacher into a student, two batches per update, saving the best student."""

import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.randint(0, 6, (count,), generator=generator)
        phase = torch.rand(count, 1, 1, generator=generator) * 6.28
        time_axis = torch.linspace(0, 12.56, 256)
        wave = torch.sin((self.labels + 1).view(-1, 1, 1) * time_axis + phase)
        self.signals = wave + 0.8 * torch.randn(count, 2, 256, generator=generator)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.signals[index], self.labels[index]


def conv_net(width):
    return nn.Sequential(
        nn.Conv1d(2, width, 9, stride=2, padding=4),
        nn.ReLU(),
        nn.Conv1d(width, 2 * width, 9, stride=2, padding=4),
        nn.ReLU(),
        nn.Conv1d(2 * width, 2 * width, 9, stride=2, padding=4),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(2 * width, 6),
    )


class Distiller:
    def __init__(self, args):
        self.args = args
        self.teacher = conv_net(32).eval().requires_grad_(False)
        self.student = conv_net(24)
        self.optimizer = torch.optim.SGD(self.student.parameters(), lr=0.02, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.7)
        self.train_loader = DataLoader(Signals(3840, 1), batch_size=32, shuffle=True)
        self.held_loader = DataLoader(Signals(128, 2), batch_size=64)
        self.updates, self.best = 0, 0.0

    def loss(self, signals, labels):
        with torch.no_grad():
            soft = F.softmax(self.teacher(signals) / 2, dim=1)
        logits = self.student(signals)
        return F.cross_entropy(logits, labels) + F.cross_entropy(logits / 2, soft)

    def train_epoch(self):
        self.student.train()
        for index, (signals, labels) in enumerate(self.train_loader, 1):
            loss = self.loss(signals, labels) / self.args.accumulate
            loss.backward()
            if index % self.args.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.updates += 1
        self.scheduler.step()

    @torch.no_grad()
    def accuracy(self):
        self.student.eval()
        right = sum((self.student(x).argmax(1) == y).sum().item() for x, y in self.held_loader)
        return right / len(self.held_loader.dataset)

    def fit(self):
        begin = time.perf_counter()
        for epoch in range(self.args.epochs):
            self.train_epoch()
            accuracy = self.accuracy()
            print(f"epoch {epoch} accuracy {accuracy:.3f}")
            if accuracy > self.best:
                self.best = accuracy
                torch.save(self.student.state_dict(), "student.pt")
        print(f"trained {self.updates} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--accumulate", type=int, default=2)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    Distiller(parser.parse_args()).fit()
