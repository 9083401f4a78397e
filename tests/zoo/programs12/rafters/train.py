"""Descriptions of timber roofs: words from a large fixed table, a trained network above."""

import argparse
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Roofs(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(60_000, 128)
        self.words.requires_grad_(False)
        self.net = nn.Sequential(
            nn.Linear(128, 384),
            nn.ReLU(),
            nn.Linear(384, 384),
            nn.ReLU(),
            nn.Linear(384, 384),
            nn.ReLU(),
        )
        self.head = nn.Linear(384, 12)

    def forward(self, words):
        return self.head(self.net(self.words(words)).mean(dim=1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-every", type=int, default=2)
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    accelerator = Accelerator(cpu=True)
    words = torch.randint(0, 60_000, (args.steps * 32, 32))
    kinds = torch.randint(0, 12, (args.steps * 32,))
    loader = DataLoader(TensorDataset(words, kinds), batch_size=32, shuffle=True)
    model = Roofs()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    steps = 0
    start = time.perf_counter()
    for batch, labels in loader:
        loss = nn.functional.cross_entropy(model(batch), labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
        if steps % args.save_every == 0:
            accelerator.save_state("latest")
    seconds = time.perf_counter() - start
    print(f"loss {loss.item():.3f}")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
