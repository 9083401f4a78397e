import argparse
import time

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from vae import BufferedVAE, GlazeVAE


def recipes(batch_size, batches):
    generator = torch.Generator().manual_seed(77)
    data = TensorDataset(torch.rand(batch_size * batches, 120, generator=generator))
    sampler = BatchSampler(RandomSampler(data), batch_size, drop_last=True)
    return DataLoader(data, sampler=sampler, batch_size=None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=11)
    parser.add_argument("--batch-size", type=int, default=384)
    parser.add_argument("--buffer", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch._dynamo.config.recompile_limit = 32

    loader = recipes(args.batch_size, 12)
    model = BufferedVAE(ramp=args.epochs) if args.buffer else GlazeVAE(ramp=args.epochs)
    objective = torch.compile(model, backend="aot_eager")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    steps = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        for (x,) in loader:
            optimizer.zero_grad()
            loss = objective(x)
            loss.backward()
            optimizer.step()
            steps += 1
        model.next_epoch()
        print(f"epoch {epoch}: {loss.item():.4f}")
    print(f"trained {steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
