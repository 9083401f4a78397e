import sys
import time

import torch
from digits import Digits
from torch import nn
from torch.utils.data import DataLoader
from transforms import Compose, Elastic, FastElastic, Normalize, RandomFlip, RandomShift

EPOCHS = 4
BATCH = 32


def build_transform(fast):
    bend = FastElastic(3.0) if fast else Elastic(3.0)
    return Compose([RandomFlip(), RandomShift(2), bend, Normalize(0.0, 1.2)])


def build_model():
    return nn.Sequential(
        nn.Conv2d(1, 28, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(28, 40, 3, padding=1, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(40 * 16 * 16, 10),
    )


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    fast = "--fast-elastic" in sys.argv[1:]
    dataset = Digits(1280, build_transform(fast))
    loader = DataLoader(
        dataset, BATCH, shuffle=True, num_workers=2, persistent_workers=True, drop_last=True
    )
    model = build_model()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    steps = 0
    begin = time.perf_counter()
    for epoch in range(EPOCHS):
        running = 0.0
        for pictures, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(pictures), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
            steps += 1
        print("epoch", epoch, "loss", round(running / len(loader), 3))
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
