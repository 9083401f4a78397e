import sys
import time

import torch

from .net import Decoder
from .settings import Settings


def fields(settings):
    torch.manual_seed(settings.seed)
    readings = torch.randn(600, settings.sensors)
    truth = torch.randn(600, 1, 32, 32).cumsum(-1) * 0.1
    return readings, truth


def main():
    settings = Settings.from_arguments(sys.argv[1:])
    torch.set_num_threads(settings.threads)
    readings, truth = fields(settings)
    model = Decoder(settings.sensors, settings.width)
    optimizer = torch.optim.SGD(model.parameters(), lr=settings.lr, momentum=0.9)
    start = time.perf_counter()
    for step in range(1, settings.steps + 1):
        rows = torch.randint(0, len(readings), (settings.batch,))
        loss = torch.nn.functional.smooth_l1_loss(model(readings[rows]), truth[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"{step}: {loss.item():.4f}")
    print(f"trained {settings.steps} steps in {time.perf_counter() - start:.3f} s")


main()
