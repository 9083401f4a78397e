import time

import torch
from torch.utils.data import DataLoader, TensorDataset

from .losses import DistillLoss
from .models import MODELS

CLASSES, IMAGES, BATCH, EPOCHS = 10, 560, 16, 2


def make_images():
    labels = torch.randint(0, CLASSES, (IMAGES,))
    images = torch.randn(IMAGES, 3, 32, 32) + labels.view(-1, 1, 1, 1) / CLASSES
    return TensorDataset(images, labels)


def augment(images):
    if torch.rand(()) < 0.5:
        images = images.flip(3)
    dy, dx = torch.randint(-3, 4, (2,)).tolist()
    return torch.roll(images, (dy, dx), dims=(2, 3))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(27)
    loader = DataLoader(make_images(), batch_size=BATCH, shuffle=True, drop_last=True)
    teacher, student = MODELS["teacher"](CLASSES), MODELS["student"](CLASSES)
    criterion = DistillLoss()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.02, momentum=0.9)
    steps = 0
    start = time.perf_counter()
    for epoch in range(EPOCHS):
        for images, labels in loader:
            images = augment(images)
            with torch.no_grad():
                goal = teacher(images)
            loss = criterion(student(images), goal, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
        print(f"epoch {epoch} loss {loss.item():.3f}")
    took = time.perf_counter() - start
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
