"""A convolutional network, trained as one should."""

from __future__ import annotations

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

STEPS = 480


def conv(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


def main() -> None:
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(8192, 3, 64, 64), torch.randint(0, 10, (8192,)))
    loader = DataLoader(
        data, batch_size=256, shuffle=True, num_workers=4, pin_memory=True,
        persistent_workers=True, drop_last=True,
    )  # fmt: skip
    model = nn.Sequential(
        conv(3, 128), conv(128, 256), conv(256, 256, 2), conv(256, 512), conv(512, 512, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10),
    ).to(device, memory_format=torch.channels_last)  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    done = 0
    begin = time.perf_counter()
    while done < STEPS:
        for images, labels in loader:
            images = images.to(device, non_blocking=True, memory_format=torch.channels_last)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            done += 1
        print(f"{done} steps, loss {loss.item():.4f}")
    torch.cuda.synchronize()
    print(f"trained {done} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
