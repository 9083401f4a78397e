import argparse
import time

import torch
from filters import BatchedFilter, LearnedFilter


def tracks(n, length, n_features, generator):
    features = torch.randn(n, n_features, generator=generator)
    rough = features[:, :1].exp().clamp(max=4)
    speed = torch.cumsum(0.1 * torch.randn(n, length, generator=generator), 1)
    noise = rough * torch.randn(n, length, generator=generator)
    return features, torch.cumsum(speed, 1) + 0.5 * noise


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--batched", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    features, observed = tracks(2000, 24, 32, torch.Generator().manual_seed(3))
    model = (BatchedFilter if args.batched else LearnedFilter)(32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    start = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(len(features), (args.batch,))
        loss = model(features[pick], observed[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
