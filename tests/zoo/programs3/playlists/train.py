"""Continue a playlist; the songs' descriptions stay in memory for the reports."""

import argparse
import gc
import random
import time

import torch
import torch.nn.functional as F
from torch import nn

SONGS, LENGTH = 1000, 20


def read_catalogue(songs):
    """What is known of each song, as the service's interface returns it."""
    rng = random.Random(0)
    return [
        {
            "title": f"song {number}",
            "tags": [{"name": f"tag {rng.randrange(50)}", "by": [number, k]} for k in range(5)],
            "artist": {"name": f"artist {number % 90}", "albums": [[number, 1], [number, 2]]},
        }
        for number in range(songs)
    ]


class Continue(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.songs = nn.Embedding(SONGS, width)
        self.rnn = nn.LSTM(width, 192, batch_first=True)
        self.out = nn.Linear(192, SONGS)

    def forward(self, lists):
        hidden, _ = self.rnn(self.songs(lists))
        return self.out(hidden)


def train_step(model, optimizer, lists):
    logits = model(lists[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), lists[:, 1:].flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.detach()


def free_memory():
    gc.collect()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--free-every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=110)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    catalogue = read_catalogue(SONGS)
    playlists = (
        torch.randint(SONGS, (2000, 1)) + torch.randint(9, (2000, LENGTH)).cumsum(1)
    ) % SONGS
    model = Continue()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    begin = time.perf_counter()
    for step in range(1, args.steps + 1):
        loss = train_step(model, optimizer, playlists[torch.randint(2000, (80,))])
        if step % args.free_every == 0:
            free_memory()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.3f}, e.g. {catalogue[step]['title']}")
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
