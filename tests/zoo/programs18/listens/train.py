"""Next-song model: which track follows which, two towers over a large catalogue."""

import argparse
import time

import torch
from torch import nn


class Towers(nn.Module):
    def __init__(self, tracks, width, sparse):
        super().__init__()
        self.tracks = nn.Embedding(tracks, width, sparse=sparse)
        self.context = nn.Sequential(
            nn.Linear(8 * width, 512),
            nn.ReLU(),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Linear(512, width),
        )

    def forward(self, history, following):
        context = self.context(self.tracks(history).flatten(1))
        scores = context @ self.tracks(following).T
        return nn.functional.cross_entropy(scores, torch.arange(len(history)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracks", type=int, default=120_000)
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--steps", type=int, default=140)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Towers(args.tracks, 32, args.sparse)
    if args.sparse:
        optimizers = [
            torch.optim.SparseAdam(model.tracks.parameters(), lr=1e-3),
            torch.optim.Adam(model.context.parameters(), lr=1e-3),
        ]
    else:
        optimizers = [torch.optim.Adam(model.parameters(), lr=1e-3)]

    sessions = torch.randint(0, args.tracks, (args.steps, 256, 9))
    start = time.perf_counter()
    for step, session in enumerate(sessions):
        loss = model(session[:, :8], session[:, 8])
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        if step % 50 == 0:
            print(step, loss.item())
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
