import argparse
import time

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed

from .data import build_loaders
from .engine import Tracker, train
from .model import PlumageNet

CONFIG = {
    "train_images": 800,
    "val_images": 240,
    "classes": 8,
    "batch_size": 16,
    "epochs": 2,
    "lr": 0.02,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--track-every", type=int, default=10)
    args = parser.parse_args()
    torch.set_num_threads(1)
    set_seed(6)
    accelerator = Accelerator(cpu=True)
    loader, held_out = build_loaders(CONFIG)
    model = PlumageNet(CONFIG["classes"])
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"], momentum=0.9)
    model, optimizer, loader, held_out = accelerator.prepare(model, optimizer, loader, held_out)
    tracker = Tracker(accelerator, held_out, args.track_every)
    start = time.perf_counter()
    steps = train(accelerator, model, optimizer, loader, tracker, CONFIG["epochs"])
    took = time.perf_counter() - start
    accelerator.print(f"best {max(score for _, score in tracker.history):.3f}")
    accelerator.print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
