"""Rain or not: trained on a large archive, drawing hard examples more often."""

import argparse
import time

import numpy as np
import torch
from torch import nn

FEATURES = 48


class AliasSampler:
    """Draws rows in proportion to their scores; a draw costs the same for any number of rows."""

    def rebuild(self, scores):
        count = len(scores)
        share = (scores * (count / scores.sum())).tolist()
        self.keep = [1.0] * count
        self.other = list(range(count))
        small = [i for i, s in enumerate(share) if s < 1.0]
        large = [i for i, s in enumerate(share) if s >= 1.0]
        while small and large:
            low, high = small.pop(), large[-1]
            self.keep[low] = share[low]
            self.other[low] = high
            share[high] -= 1.0 - share[low]
            if share[high] < 1.0:
                small.append(large.pop())
        self.keep, self.other = np.array(self.keep), np.array(self.other)

    def draw(self, size, rng):
        rows = rng.integers(len(self.keep), size=size)
        return np.where(rng.random(size) < self.keep[rows], rows, self.other[rows])


class SumSampler:
    def rebuild(self, scores):
        self.total = np.cumsum(scores)

    def draw(self, size, rng):
        return np.searchsorted(self.total, rng.random(size) * self.total[-1])


def make_archive(count, seed):
    generator = torch.Generator().manual_seed(seed)
    weather = torch.randn(count, FEATURES, generator=generator)
    rain = (weather[:, 0] * weather[:, 1] + weather[:, 2] > 0.3).float()
    return weather, rain


def train(model, weather, rain, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", enabled=args.amp)
    rng = np.random.default_rng(60)
    sampler = AliasSampler() if args.sampler == "alias" else SumSampler()
    scores = np.full(len(weather), 0.7)
    steps = 0
    for _ in range(args.rounds):
        for i in range(args.round_steps):
            if i == 0:
                sampler.rebuild(scores)
            rows = sampler.draw(args.batch_size, rng)
            index = torch.from_numpy(rows)
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.amp):
                output = model(weather[index]).squeeze(1)
                losses = nn.functional.binary_cross_entropy_with_logits(
                    output, rain[index], reduction="none"
                )
            scaler.scale(losses.mean()).backward()
            scaler.step(optimizer)
            scaler.update()
            scores[rows] = losses.detach().numpy() + 0.05
            steps += 1
        print(f"step {steps}: loss {losses.mean().item():.4f}")
    return steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--round-steps", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--sampler", choices=["alias", "sum"], default="alias")
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(60)
    weather, rain = make_archive(320_000, seed=61)
    model = nn.Sequential(
        nn.Linear(FEATURES, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 1)
    )
    started = time.perf_counter()
    steps = train(model, weather, rain, args)
    print(f"trained {steps} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
