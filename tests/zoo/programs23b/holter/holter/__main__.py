import argparse
import time

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader

from holter.dataset import BeatWindows
from holter.network import BeatNet
from holter.recordings import LEADS, write_study


def parse():
    parser = argparse.ArgumentParser(prog="holter")
    parser.add_argument("--patients", type=int, default=6)
    parser.add_argument("--beats-each", type=int, default=320)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--mmap", action="store_const", const="r")
    return parser.parse_args()


def run():
    args = parse()
    torch.manual_seed(4)
    torch.set_num_threads(1)
    beats = write_study("study", args.patients, args.beats_each, seed=4)
    loader = DataLoader(
        BeatWindows(beats, args.mmap),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=1,
    )
    model = BeatNet(LEADS, kinds=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=len(loader))

    steps = 0
    started = time.perf_counter()
    for windows, kinds in loader:
        loss = F.cross_entropy(model(windows), kinds)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        steps += 1
        if steps % 40 == 0:
            print(f"[{steps}/{len(loader)}] loss {loss.item():.3f}")
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    run()
