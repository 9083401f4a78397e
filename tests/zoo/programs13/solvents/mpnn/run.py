import argparse
import json
import time

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader

from .graphs import collate, make_graphs
from .model import MessagePassing


def evaluate(model, batches):
    model.eval()
    with torch.no_grad():
        error = [F.l1_loss(model(batch), batch.value).item() for batch in batches]
    model.train()
    return sum(error) / len(error)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=24)
    parser.add_argument("--lr", type=float, default=1e-3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(81)
    loader = DataLoader(
        make_graphs(960, 81), args.batch_size, shuffle=True, collate_fn=collate, drop_last=True
    )
    valid = [collate(make_graphs(48, 82))]
    model = MessagePassing()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    log, steps = [], 0

    start = time.perf_counter()
    for epoch in range(args.epochs):
        total = 0.0
        for batch in loader:
            loss = F.mse_loss(model(batch), batch.value)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
            total += loss.item()
            steps += 1
        log.append({"epoch": epoch, "mse": total / len(loader), "mae": evaluate(model, valid)})
        plateau.step(log[-1]["mae"])
        print(json.dumps(log[-1]))
    seconds = time.perf_counter() - start
    torch.save(model.state_dict(), "mpnn.pt")
    print(f"trained {steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
