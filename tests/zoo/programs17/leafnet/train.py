import argparse
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

from net import LeafNet

torch.set_num_threads(1)


def get_args():
    p = argparse.ArgumentParser(description="plant disease classifier")
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--per-channel", action="store_true")
    return p.parse_args()


def main(args):
    torch.manual_seed(7)
    n = args.steps * args.batch_size
    data = TensorDataset(torch.rand(n, 3, 48, 48), torch.randint(0, 15, (n,)))
    loader = DataLoader(data, args.batch_size, shuffle=True)
    model = LeafNet(per_channel=args.per_channel)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss()
    seen, start = 0, time.perf_counter()
    for images, target in loader:
        output = model(images)
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += 1
    print(f"trained {seen} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main(get_args())
