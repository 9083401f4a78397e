"""Crack detection on bridge photographs."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class ConvBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x):
        return nn.functional.max_pool2d(torch.relu(self.norm(self.conv(x))), 2)


class CrackNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(ConvBlock(1, 16), ConvBlock(16, 32), ConvBlock(32, 48))
        self.head = nn.Linear(48, 2)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.rand(1344, 1, 48, 48), torch.randint(2, (1344,)))
    train_set, test_set = random_split(data, [1280, 64])
    train_loader = DataLoader(train_set, 32, shuffle=True)
    test_loader = DataLoader(test_set, 64)
    model = CrackNet()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        running = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
            steps += 1
        scheduler.step()
        print(f"{epoch} loss {running / 40:.4f} accuracy {evaluate(model, test_loader):.3f}")
    torch.save(model.state_dict(), "cracks.pt")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
