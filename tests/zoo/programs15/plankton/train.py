# plankton images (64x64 grey), CNN, with accuracy and confidence shown per epoch
import argparse
import time

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)
torch.set_num_threads(1)


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(
            nn.Conv2d(1, 24, 3, stride=2),
            nn.ReLU(),
            nn.Conv2d(24, 48, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(48, 64, 3),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, 20),
        )

    def forward(self, x):
        return self.f(x)


def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean()


def confidence(model, x):
    return torch.softmax(model(x), 1).max(1).values.mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reuse", action="store_true")
    args = parser.parse_args()
    images, labels = torch.rand(800, 1, 64, 64), torch.randint(0, 20, (800,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=32, shuffle=True)
    model = CNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    steps = 0
    start = time.perf_counter()
    for epoch in range(3):
        acc = conf = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            out = model(x)
            loss = criterion(out, y)
            if args.reuse:
                out = out.detach()
                acc += (out.argmax(1) == y).float().mean().item()
                conf += torch.softmax(out, 1).max(1).values.mean().item()
            else:
                acc += accuracy(model, x, y).item()
                conf += confidence(model, x).item()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch}: acc {acc / len(loader):.3f} conf {conf / len(loader):.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
