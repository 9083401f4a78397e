import argparse
import random
import time

import torch
from folk import Tunes
from torch import nn


class Fiddler(nn.Module):
    def __init__(self, n=48, dim=96):
        super().__init__()
        self.embed = nn.Embedding(n, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, n)

    def forward(self, notes):
        return self.out(self.lstm(self.embed(notes))[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--notes", type=int, default=1000000)
    parser.add_argument("--batches", type=int, default=120)
    parser.add_argument("--array", action="store_true")
    args = parser.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    tunes = Tunes(args.notes)
    model = Fiddler()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    batches = tunes.batches_of_array if args.array else tunes.batches
    start = time.perf_counter()
    steps = 0
    for notes in batches(64, args.batches):
        notes = torch.from_numpy(notes)
        scores = model(notes[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), notes[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
        if steps % 50 == 0:
            print(f"step {steps}: {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
