import argparse
import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def split(seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(64 * 200 + 2000, 60, generator=generator)
    w = torch.randn(60, 1, generator=generator)
    y = (x @ w).sigmoid().bernoulli(generator=generator).squeeze(1)
    return TensorDataset(x[2000:], y[2000:]), TensorDataset(x[:2000], y[:2000])


def network():
    return nn.Sequential(
        nn.Linear(60, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 1)
    )


@torch.no_grad()
def accuracy(accelerator, model, loader):
    model.eval()
    right = total = 0
    for x, y in loader:
        guess = model(x).squeeze(1) > 0
        guess, y = accelerator.gather_for_metrics((guess, y))
        right += (guess == y.bool()).sum().item()
        total += len(y)
    model.train()
    return right / total


def train(args):
    accelerator = Accelerator(cpu=True)
    train_set, test_set = split()
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model, optimizer, train_loader, test_loader = accelerator.prepare(
        model,
        optimizer,
        DataLoader(train_set, batch_size=64, shuffle=True, drop_last=True),
        DataLoader(test_set, batch_size=250),
    )
    criterion = nn.BCEWithLogitsLoss()
    step = 0
    start = time.perf_counter()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        accelerator.backward(loss)
        optimizer.step()
        step += 1
        if step % args.check_every == 0:
            accelerator.print(f"{step}: accuracy {accuracy(accelerator, model, test_loader):.3f}")
    return step, time.perf_counter() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--check-every", type=int, default=8)
    torch.set_num_threads(1)
    torch.manual_seed(2)
    steps, seconds = train(parser.parse_args())
    print(f"trained {steps} steps in {seconds:.3f} s")
