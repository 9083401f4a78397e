import argparse
import time

import torch
from model import DiceCE, RoadNet, make_tiles
from torch.utils.data import DataLoader, TensorDataset


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tiles", type=int, default=160)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--context-pool", type=int, default=1)
    return parser.parse_args()


def main():
    args = parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    images, masks = make_tiles(args.tiles, args.size, torch.Generator().manual_seed(1))
    loader = DataLoader(TensorDataset(images, masks), args.batch_size, shuffle=True)
    model = RoadNet(pool=args.context_pool)
    criterion = DiceCE()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 20))
    step = 0
    t0 = time.perf_counter()
    for epoch in range(args.epochs):
        for image, mask in loader:
            loss = criterion(model(image), mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            step += 1
        print(f"epoch {epoch} loss {loss.item():.4f}")
    print(f"trained {step} steps in {time.perf_counter() - t0:.3f} s")


if __name__ == "__main__":
    main()
