import argparse
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

from .engine import Gan
from .setup import load_settings, prepare_machine


def stage(n):
    coarse = torch.rand(n, 3, 4, 4) * 2 - 1
    return torch.nn.functional.interpolate(coarse, size=32, mode="bilinear")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("overrides", nargs="*")
    settings = load_settings(parser.parse_args().overrides)
    prepare_machine(settings)
    data = TensorDataset(stage(settings["images"]))
    loader = DataLoader(data, batch_size=settings["batch"], shuffle=True, drop_last=True)
    gan = Gan(settings)
    steps = 0
    start = time.perf_counter()
    for epoch in range(settings["epochs"]):
        for (real,) in loader:
            d_loss, g_loss = gan.train_step(real)
            steps += 1
        print(f"epoch {epoch} critic {d_loss.item():.3f} generator {g_loss.item():.3f}")
    took = time.perf_counter() - start
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
