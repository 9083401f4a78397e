import argparse
import logging
import time

import torch
from losses import DistillationLoss, FrozenDistillationLoss
from nets import ConvNet
from torch.utils.data import DataLoader, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--images", type=int, default=800)
    parser.add_argument("--frozen", action="store_true")
    args = parser.parse_args()
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    torch.manual_seed(6)
    torch.set_num_threads(1)
    teacher, student = ConvNet(width=40, depth=3), ConvNet(width=24, depth=3)
    criterion = (FrozenDistillationLoss if args.frozen else DistillationLoss)(teacher)
    labels = torch.randint(12, (args.images,))
    images = torch.randn(12, 3, 32, 32)[labels] + torch.randn(args.images, 3, 32, 32)
    loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.02, momentum=0.9)

    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for x, y in loader:
            loss = criterion(student(x), x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        logging.info("epoch %d loss %.5f", epoch, loss.item())
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
