import argparse
import time

import torch
from net import QueueModel
from sessions import Sessions
from torch.nn import functional as F


def build_optimizers(model, lr, sparse):
    if sparse:
        return [
            torch.optim.SparseAdam([model.track.weight], lr=lr),
            torch.optim.Adam(model.dense_parameters(), lr=lr, fused=True),
        ]
    return [torch.optim.Adam(model.parameters(), lr=lr, fused=True)]


def train_step(model, optimizers, batch):
    logits = model(*batch)
    target = torch.zeros(len(logits), dtype=torch.long)
    loss = F.cross_entropy(logits, target)
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    return loss.detach()


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracks", type=int, default=260_000)
    parser.add_argument("--sessions", type=int, default=12_800)
    parser.add_argument("--history", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--sparse", action="store_true")
    args = parser.parse_args(argv)

    torch.set_num_threads(1)
    torch.manual_seed(1)
    sessions = Sessions(args.sessions, args.tracks, args.history, seed=1)
    model = QueueModel(args.tracks, sparse=args.sparse)
    optimizers = build_optimizers(model, args.lr, args.sparse)

    steps, t0 = 0, time.perf_counter()
    for epoch in range(args.epochs):
        for batch in sessions.iterate(args.batch_size, seed=epoch):
            loss = train_step(model, optimizers, batch)
            steps += 1
        print(f"epoch {epoch} | loss {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - t0:.3f} s")


if __name__ == "__main__":
    main()
