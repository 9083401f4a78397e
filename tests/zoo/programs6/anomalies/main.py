import argparse
import time

import torch

from detector import Encoder, History, RunningMean


def readings(batches, size, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(batches):
        yield torch.randn(size, 64, generator=generator)


def fit(encoder, reference, stream, lr):
    optimizer = torch.optim.Adam(encoder.parameters(), lr=lr, weight_decay=1e-6)
    count = 0
    for x in stream:
        z = encoder(x)
        reference.update(z)
        loss = (z - reference.centre()).pow(2).sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        count += 1
        if count % 50 == 0:
            print(f"{count} batches, mean distance {loss.item():.4f}")
    return count


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--running", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    reference = RunningMean() if args.running else History()
    start = time.perf_counter()
    steps = fit(Encoder(), reference, readings(args.batches, args.batch_size), lr=1e-4)
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
