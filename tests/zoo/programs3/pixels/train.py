"""Autoregressive model of small grey pictures, with its predictions in the log."""

import argparse
import logging
import time

import torch
import torch.nn.functional as F
from torch import nn

log = logging.getLogger("pixels")


class MaskedConv2d(nn.Conv2d):
    def __init__(self, *args, first=False, **kwargs):
        super().__init__(*args, **kwargs)
        mask = torch.ones_like(self.weight)
        height, width = self.kernel_size
        mask[:, :, height // 2, width // 2 + (not first) :] = 0
        mask[:, :, height // 2 + 1 :] = 0
        self.register_buffer("mask", mask)

    def forward(self, x):
        return F.conv2d(x, self.weight * self.mask, self.bias, padding=self.padding)


def report(step, loss, logits, batch, model):
    probabilities = logits.detach().softmax(1)
    log.info("step %d loss %.4f", step, loss.item())
    log.info("truth %s", batch[0])
    log.info("predicted %s", probabilities[0].argmax(0))
    log.info("confidence %s", probabilities[0].amax(0))
    log.info("kernels %s", model[0].weight)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log-every", type=int, default=1)
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    logging.basicConfig(filename="pixels.log", level=logging.INFO)
    torch.set_printoptions(profile="full", linewidth=160)
    torch.manual_seed(0)
    torch.set_num_threads(1)

    size, levels = 24, 8
    ramp = torch.linspace(0, 1, size)
    tilt = torch.rand(800, 2, 1, 1)
    pictures = tilt[:, 0] * ramp + tilt[:, 1] * ramp[:, None]
    pictures = (pictures * levels / 2).long().clamp(max=levels - 1)

    model = nn.Sequential(
        MaskedConv2d(1, 32, 5, padding=2, first=True),
        nn.ReLU(),
        MaskedConv2d(32, 32, 3, padding=1),
        nn.ReLU(),
        MaskedConv2d(32, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, levels, 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    begin = time.perf_counter()
    for step in range(1, args.steps + 1):
        batch = pictures[torch.randint(len(pictures), (12,))]
        logits = model(batch[:, None].float() / levels)
        loss = F.cross_entropy(logits, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % args.log_every == 0:
            report(step, loss, logits, batch, model)
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
