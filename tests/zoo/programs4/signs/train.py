"""Traffic signs; a small residual network with label smoothing."""

import argparse
import collections
import logging
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

logger = logging.getLogger("signs")
N_CLASSES = 20


class Residual(nn.Module):
    def __init__(self, c_in, c_out, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.norm1 = nn.GroupNorm(4, c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.norm2 = nn.GroupNorm(4, c_out)
        self.short = nn.Conv2d(c_in, c_out, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x):
        h = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(h)) + self.short(x))


def build():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        Residual(16, 16),
        Residual(16, 32, 2),
        Residual(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, N_CLASSES),
    )


def make_signs(n, size=28):
    labels = torch.randint(N_CLASSES, (n,))
    patterns = torch.randn(N_CLASSES, 3, 7, 7)
    patterns = nn.functional.interpolate(patterns, size=size, mode="nearest")
    return patterns[labels] + 1.2 * torch.randn(n, 3, size, size), labels


def compute_loss(model, images, labels):
    return nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)


def topk_accuracy(logits, labels, ks=(1, 5)):
    ranked = logits.topk(max(ks), 1).indices == labels[:, None]
    return {f"top{k}": ranked[:, :k].any(1).float().mean().item() for k in ks}


class Meter:
    def __init__(self, size=50):
        self.values = collections.defaultdict(lambda: collections.deque(maxlen=size))

    def update(self, **values):
        for name, value in values.items():
            self.values[name].append(value)

    def __str__(self):
        return " ".join(f"{k} {sum(v) / len(v):.4f}" for k, v in self.values.items())


def train_step(model, optimizer, images, labels, meter):
    loss = compute_loss(model, images, labels)
    with torch.no_grad():
        accuracy = topk_accuracy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.update(loss=loss.item(), **accuracy)


def train_step_shared(model, optimizer, images, labels, meter):
    logits = model(images)
    loss = nn.functional.cross_entropy(logits, labels, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.update(loss=loss.item(), **topk_accuracy(logits.detach(), labels))


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--n", type=int, default=1024)
    parser.add_argument("--bs", type=int, default=32)
    parser.add_argument("--shared", action="store_true")
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO)
    torch.manual_seed(21)
    torch.set_num_threads(1)
    loader = DataLoader(TensorDataset(*make_signs(args.n)), args.bs, shuffle=True)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
    do_step = train_step_shared if args.shared else train_step
    meter, count = Meter(), 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for images, labels in loader:
            do_step(model, optimizer, images, labels, meter)
            count += 1
        logger.info("epoch %d: %s", epoch, meter)
    print(f"trained {count} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
