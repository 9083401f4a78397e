import argparse
import time

import torch
from filter import TrendFilter


def demand(n, length, n_features, generator):
    features = torch.randn(n, n_features, generator=generator)
    trend = torch.cumsum(0.1 * torch.randn(n, length, generator=generator), 1)
    level = torch.cumsum(trend + 0.3 * torch.randn(n, length, generator=generator), 1)
    noise = features[:, :1].exp().clamp(max=3) * torch.randn(n, length, generator=generator)
    return features, (level + noise) / 3


def loss_one_by_one(model, features, series):
    return torch.stack([model.nll(f, s) for f, s in zip(features, series)]).mean()


def loss_together(model, features, series):
    return model.nll(features, series).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--together", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    features, series = demand(500, args.length, 12, torch.Generator().manual_seed(2))
    model = TrendFilter(12)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    compute = loss_together if args.together else loss_one_by_one
    begin = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(len(series), (args.batch,))
        loss = compute(model, features[pick], series[pick])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
