"""Urgent or not? Voicemails as mel frames, padded to the longest of the batch."""

import argparse
import time

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Messages(Dataset):
    def __init__(self, count, longest=None, seed=17):
        g = torch.Generator().manual_seed(seed)
        self.sound = torch.randn(6000, 40, generator=g)
        self.length = torch.randint(60, 110, (count,), generator=g)
        rambling = torch.rand(count, generator=g) < 0.004
        self.length[rambling] = torch.randint(1400, 1800, (int(rambling.sum()),), generator=g)
        if longest:
            self.length = self.length.clamp(max=longest)
        self.urgent = torch.randint(0, 2, (count,), generator=g)

    def __len__(self):
        return len(self.length)

    def __getitem__(self, i):
        return self.sound[i : i + int(self.length[i])], self.urgent[i]


def collate(items):
    frames, labels = zip(*items)
    lengths = torch.tensor([len(f) for f in frames])
    return pad_sequence(frames, batch_first=True), lengths, torch.stack(labels)


class Listener(nn.Module):
    def __init__(self, width=144):
        super().__init__()
        self.conv1 = nn.Conv1d(40, width, 7, padding=3)
        self.conv2 = nn.Conv1d(width, width, 5, padding=2)
        self.out = nn.Linear(width, 2)

    def forward(self, frames, lengths):
        x = torch.relu(self.conv1(frames.transpose(1, 2)))
        x = torch.relu(self.conv2(x))
        inside = torch.arange(x.shape[-1]) < lengths[:, None]
        return self.out((x * inside[:, None]).sum(-1) / lengths[:, None])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--longest", type=int, default=None)
    p.add_argument("--epochs", type=int, default=2)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    loader = DataLoader(Messages(1440, a.longest), batch_size=16, shuffle=True, collate_fn=collate)
    model = Listener()
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    n, t0 = 0, time.perf_counter()
    for epoch in range(a.epochs):
        for frames, lengths, urgent in loader:
            loss = nn.functional.cross_entropy(model(frames, lengths), urgent)
            opt.zero_grad()
            loss.backward()
            opt.step()
            n += 1
        print(f"epoch {epoch}: {loss.item():.3f}")
    print(f"trained {n} steps in {time.perf_counter() - t0:.3f} s")


if __name__ == "__main__":
    main()
