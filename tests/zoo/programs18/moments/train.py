"""Contrastive learning with a bank of earlier embeddings as negatives."""

import argparse
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Bank:
    def __init__(self, width, negatives, trim):
        self.negatives = negatives
        self.trim = trim
        self.rows = torch.zeros(0, width)

    def add(self, rows):
        self.rows = torch.cat([self.rows, rows.detach()])
        if self.trim:
            self.rows = self.rows[-self.negatives :].clone()

    def sample(self):
        return self.rows[-self.negatives :]


class Encoder(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 256), nn.ReLU(), nn.Linear(256, width))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def info_nce(a, b, negatives, temperature=0.1):
    positive = (a * b).sum(dim=1, keepdim=True)
    logits = torch.cat([positive, a @ negatives.T], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(a), dtype=torch.long))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--negatives", type=int, default=512)
    parser.add_argument("--trim", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    clips = torch.randn(2048, 384)
    model = Encoder(384, 768)
    bank = Bank(768, args.negatives, args.trim)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    start = time.perf_counter()
    for step in range(args.steps):
        x = clips[torch.randint(0, len(clips), (256,))]
        a = model(x + 0.1 * torch.randn_like(x))
        b = model(x + 0.1 * torch.randn_like(x))
        bank.add(b)
        loss = info_nce(a, b, bank.sample())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print("step", step, "loss", loss.item())
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
