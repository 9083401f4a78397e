import argparse
import time

import torch
from model import DemandModel, nll


def make_products(n, length, n_features, generator):
    features = torch.randn(n, n_features, generator=generator)
    season = torch.sin(torch.arange(length) / 3.5 + 2 * features[:, :1])
    noise = 0.3 * features[:, 1:2].exp().clamp(max=3)
    return features, season + noise * torch.randn(n, length, generator=generator)


def loss_one_by_one(theta, series, order):
    return torch.stack([nll(t, s, order) for t, s in zip(theta, series)]).mean()


def loss_together(theta, series, order):
    return nll(theta, series, order).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--together", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    features, series = make_products(4000, args.length, 48, torch.Generator().manual_seed(2))
    model = DemandModel(48)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    compute = loss_together if args.together else loss_one_by_one
    begin = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(len(series), (args.batch,))
        loss = compute(model(features[pick]), series[pick], model.order)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 30 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    print(f"trained {args.steps} steps in {time.perf_counter() - begin:.3f} s")


if __name__ == "__main__":
    main()
