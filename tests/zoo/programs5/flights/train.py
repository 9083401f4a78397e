import argparse
import time

import torch
from board import Departures, collate, parse, parse_iso, write_departures
from torch import nn
from torch.utils.data import DataLoader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--flights", type=int, default=76800)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--iso", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    write_departures("departures.csv", args.flights)
    data = Departures("departures.csv", parse_iso if args.iso else parse)
    loader = DataLoader(data, batch_size=768, collate_fn=collate)
    model = nn.Sequential(
        nn.Linear(5, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps, start = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for features, late in loader:
            loss = nn.functional.l1_loss(model(features)[:, 0], late)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
