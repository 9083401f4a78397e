"""A small network learns from a large one that does not change; each image is shifted anew."""

import time

import torch
from torch import nn


def network(width, depth):
    layers = [nn.Conv2d(3, width, 4, 4), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def shift(images):
    a, b = torch.randint(-6, 7, (2,)).tolist()
    images = images.roll((a, b), (2, 3))
    return images.flip(3) if torch.rand(()) < 0.5 else images


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    apples = torch.randn(600, 3, 48, 48)
    teacher, student = network(64, 2).eval(), network(48, 3)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step in range(200):
        images = shift(apples[torch.randint(len(apples), (24,))])
        with torch.inference_mode():
            wanted = torch.softmax(teacher(images) / 2, 1)
        got = torch.log_softmax(student(images) / 2, 1)
        loss = nn.functional.kl_div(got, wanted.clone(), reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: {loss.item():.5f}")
    print(f"trained 200 steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
