import argparse
import time

import torch
from catalog import Catalog, pad_events, pad_events_numpy
from model import QuakeAttention
from torch.utils.data import DataLoader


def run(args):
    collate = pad_events_numpy if args.collate == "numpy" else pad_events
    loader = DataLoader(Catalog(args.sequences), 32, shuffle=True, collate_fn=collate)
    model = QuakeAttention()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = 0
    for epoch in range(args.epochs):
        for events, gaps, mask in loader:
            predicted = model(events, gaps, mask)[:, :-1]
            error = (predicted - events[:, 1:]).square().mean(-1)
            loss = (error * mask[:, 1:]).sum() / mask[:, 1:].sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: {loss.item():.4f}")
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--sequences", type=int, default=640)
    parser.add_argument("--collate", choices=["plain", "numpy"], default="plain")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    start = time.perf_counter()
    steps = run(args)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
