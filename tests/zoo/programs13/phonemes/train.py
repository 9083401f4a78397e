"""Frame-pooled phone classification on synthetic formant speech (chapter 3 experiments)."""

import argparse
import math
import random
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from frontend import FRONTENDS, RATE

parser = argparse.ArgumentParser()
parser.add_argument("--frontend", choices=sorted(FRONTENDS), default="v1")
parser.add_argument("--num-workers", type=int, default=2)
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--seed", type=int, default=5)
args = parser.parse_args()

PHONES = 12
LENGTH = 2400
N_TRAIN = 800
N_TEST = 48


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Utterances(Dataset):
    """One vowel-like sound per item: three formants, a pitch and some noise."""

    def __init__(self, count, seed, augment):
        rng = np.random.default_rng(seed)
        self.formants = np.random.default_rng(0).uniform(250, 3400, (PHONES, 3))
        self.labels = rng.integers(0, PHONES, count)
        self.augment = augment
        time_axis = np.arange(LENGTH) / RATE
        self.waves = np.zeros((count, LENGTH), np.float32)
        for i, label in enumerate(self.labels):
            pitch = rng.uniform(0.93, 1.07)
            for f in self.formants[label] * pitch:
                self.waves[i] += np.sin(2 * math.pi * f * time_axis + rng.uniform(0, 6))
            self.waves[i] += rng.normal(0, 0.8, LENGTH)
        self.features = FRONTENDS[args.frontend]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        wave = self.waves[i]
        if self.augment:
            shift = np.random.randint(-200, 200)
            wave = np.roll(wave, shift) * np.float32(np.random.uniform(0.6, 1.4))
        spec = self.features(wave)
        spec = (spec - spec.mean()) / (spec.std() + 1e-5)
        return torch.from_numpy(spec.astype(np.float32)), int(self.labels[i])


class PhoneNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.stem = nn.Conv1d(24, width, 5, padding=2)
        self.blocks = nn.ModuleList()
        self.norms = nn.ModuleList()
        for d in (1, 2, 4, 1, 2, 4):
            self.blocks.append(nn.Conv1d(width, width, 5, padding=2 * d, dilation=d))
            self.norms.append(nn.BatchNorm1d(width))
        self.rnn = nn.GRU(width, 64, batch_first=True)
        self.out = nn.Linear(64, PHONES)

    def forward(self, x):
        x = F.relu(self.stem(x))
        for conv, norm in zip(self.blocks, self.norms):
            x = x + F.relu(norm(conv(x)))
        h, _ = self.rnn(x.transpose(1, 2))
        return self.out(h.mean(1))


def test(net, loader):
    net.eval()
    right = total = 0
    with torch.no_grad():
        for x, y in loader:
            right += (net(x).argmax(1) == y).sum().item()
            total += len(y)
    return right / total


torch.set_num_threads(1)
set_seed(args.seed)
train_set = Utterances(N_TRAIN, args.seed, augment=True)
test_set = Utterances(N_TEST, args.seed + 1, augment=False)
test_x = torch.stack([x for x, _ in test_set])
test_y = torch.tensor([y for _, y in test_set])
test_loader = DataLoader(torch.utils.data.TensorDataset(test_x, test_y), batch_size=24)
train_loader = DataLoader(
    train_set,
    batch_size=args.batch_size,
    shuffle=True,
    num_workers=args.num_workers,
    persistent_workers=args.num_workers > 0,
    drop_last=True,
)

net = PhoneNet()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
n_steps = args.epochs * len(train_loader)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, n_steps)

t0 = time.time()
step = 0
for epoch in range(args.epochs):
    net.train()
    running = 0.0
    for x, y in train_loader:
        opt.zero_grad()
        loss = F.cross_entropy(net(x), y, label_smoothing=0.05)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        sched.step()
        running = 0.95 * running + 0.05 * loss.item()
        step += 1
        if step % 20 == 0:
            print(
                f"[{epoch}] {step:4d}/{n_steps} loss {running:.3f} lr {sched.get_last_lr()[0]:.1e}"
            )
    print(f"epoch {epoch}: test accuracy {test(net, test_loader):.3f}")
seconds = time.time() - t0
torch.save(net.state_dict(), "phonenet.pt")
print(f"trained {step} steps in {seconds:.3f} s")
