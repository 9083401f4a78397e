"""A small convolutional network on pictures that fit into memory."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split
from tqdm import tqdm

EPOCHS = 4


def make_leaves(count, side=32):
    y, x = torch.meshgrid(torch.linspace(-1, 1, side), torch.linspace(-1, 1, side), indexing="ij")
    species = torch.randint(5, (count,))
    angle = torch.atan2(y, x)[None]
    outline = 0.6 + 0.25 * torch.cos((species[:, None, None] + 2) * angle)
    inside = ((x**2 + y**2).sqrt()[None] < outline).float()
    color = torch.rand(count, 3, 1, 1)
    return inside[:, None] * color + 0.2 * torch.randn(count, 3, side, side), species


def conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
    )


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    model.train()
    return right / len(loader.dataset)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train, held = random_split(TensorDataset(*make_leaves(1520)), [1280, 240])
    train_loader = DataLoader(train, batch_size=32, shuffle=True)
    held_loader = DataLoader(held, batch_size=120)
    model = nn.Sequential(
        conv(3, 24),
        nn.MaxPool2d(2),
        conv(24, 48),
        conv(48, 48),
        nn.MaxPool2d(2),
        conv(48, 96),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 5),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.1, epochs=EPOCHS, steps_per_epoch=len(train_loader)
    )
    criterion = nn.CrossEntropyLoss()

    steps = 0
    begin = time.perf_counter()
    for epoch in range(EPOCHS):
        bar = tqdm(train_loader, desc=f"epoch {epoch}", mininterval=0.5)
        for x, y in bar:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            steps += 1
            if steps % 10 == 0:
                bar.set_postfix(loss=f"{loss.item():.3f}")
        print(f"epoch {epoch}: accuracy {accuracy(model, held_loader):.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
