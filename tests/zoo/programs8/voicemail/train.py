"""Spot urgent voicemails: a convolutional encoder on frames, batches padded to the longest."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset


class Voicemails(Dataset):
    def __init__(self, count=720, bands=40, max_frames=None):
        g = torch.Generator().manual_seed(4)
        frames = torch.randint(60, 120, (count,), generator=g)
        frames[torch.randperm(count, generator=g)[: count // 90]] = 1800
        self.mails = [torch.randn(int(n), bands, generator=g) for n in frames]
        self.max_frames = max_frames

    def __len__(self):
        return len(self.mails)

    def __getitem__(self, i):
        return self.mails[i][: self.max_frames], i % 2


def collate(samples):
    mails, urgent = zip(*samples)
    lengths = torch.tensor([len(mail) for mail in mails])
    return pad_sequence(mails, batch_first=True), lengths, torch.tensor(urgent)


class Spotter(nn.Module):
    def __init__(self, bands=40, dim=128):
        super().__init__()
        self.inp = nn.Conv1d(bands, dim, 5, padding=2)
        self.convs = nn.ModuleList(nn.Conv1d(dim, dim, 5, padding=2) for _ in range(3))
        self.head = nn.Linear(dim, 2)

    def forward(self, x, lengths):
        h = F.gelu(self.inp(x.transpose(1, 2)))
        for conv in self.convs:
            h = h + F.gelu(conv(h))
        mask = torch.arange(h.shape[2])[None] < lengths[:, None]
        return self.head((h * mask[:, None]).sum(2) / lengths[:, None])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-frames", type=int, default=None)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = Voicemails(max_frames=args.max_frames)
    loader = DataLoader(data, batch_size=8, shuffle=True, collate_fn=collate)
    model = Spotter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    start, steps, total = time.perf_counter(), 0, torch.zeros(())
    for _ in range(1):
        for mails, lengths, urgent in loader:
            loss = F.cross_entropy(model(mails, lengths), urgent)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
            steps += 1
    print(f"loss {total.item() / steps:.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
