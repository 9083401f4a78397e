"""Masked-token pretraining on abstracts, with Accelerate."""

import argparse
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
VOCAB, LENGTH = 6000, 16


class Encoder(nn.Module):
    def __init__(self, d=192):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, d)
        self.pos = nn.Parameter(torch.zeros(LENGTH, d))
        layer = nn.TransformerEncoderLayer(d, 4, 384, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.topic = nn.Linear(d, 30)

    def forward(self, ids):
        return self.topic(self.layers(self.embed(ids) + self.pos).mean(1))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=140)
    ap.add_argument("--save-every", type=int, default=2)
    args = ap.parse_args()
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True)
    n = args.steps * 20
    loader = DataLoader(
        TensorDataset(torch.randint(0, VOCAB, (n, LENGTH)), torch.randint(0, 30, (n,))),
        batch_size=20,
        shuffle=True,
    )
    model = Encoder()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    step, start = 0, time.perf_counter()
    for ids, topic in loader:
        loss = nn.functional.cross_entropy(model(ids), topic)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % args.save_every == 0:
            accelerator.save_state("checkpoints/last")
    print(f"trained {step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
