"""Self-supervised features of paint samples (reflectance spectra), by contrast."""

import argparse
import time

import torch
import torch.nn.functional as F
from bank import MemoryBank
from torch import nn

TEMPERATURE = 0.1


def view(spectra, generator):
    shift = torch.randn(len(spectra), 1, generator=generator) * 0.1
    return spectra + shift + 0.05 * torch.randn(spectra.shape, generator=generator)


def contrast(queries, keys, bank):
    positive = (queries * keys).sum(1, keepdim=True)
    logits = torch.cat([positive, bank.logits(queries)], 1) / TEMPERATURE
    return F.cross_entropy(logits, torch.zeros(len(queries), dtype=torch.long))


def main():
    cli = argparse.ArgumentParser()
    cli.add_argument("--steps", type=int, default=160)
    cli.add_argument("--limit", type=int, default=None)
    args = cli.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(0)
    spectra = torch.rand(4000, 256, generator=g)
    encoder = nn.Sequential(
        nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 256)
    )
    optimizer = torch.optim.SGD(encoder.parameters(), lr=0.05, momentum=0.9)
    bank = MemoryBank(256, args.limit)
    started = time.perf_counter()
    for step in range(args.steps):
        rows = spectra[torch.randint(0, len(spectra), (128,), generator=g)]
        queries = F.normalize(encoder(view(rows, g)), dim=1)
        with torch.no_grad():
            keys = F.normalize(encoder(view(rows, g)), dim=1)
        loss = contrast(queries, keys, bank)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bank.push(keys)
        if (step + 1) % 40 == 0:
            print(f"step {step + 1:4d}  loss {loss.item():.3f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
