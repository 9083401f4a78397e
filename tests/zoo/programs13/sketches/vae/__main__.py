import argparse
import time

import torch

from .bank import FeatureBank
from .data import strokes
from .model import VAE, losses


def main():
    parser = argparse.ArgumentParser(prog="vae")
    parser.add_argument("--bank", type=int, default=None, help="rows of features to hold")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--beta", type=float, default=1.0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(14)
    data = strokes(3200, 14)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(data), args.batch_size, shuffle=True, drop_last=True
    )
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    bank = FeatureBank(args.bank)

    step = 0
    start = time.perf_counter()
    for epoch in range(args.epochs):
        metrics = {"reconstruction": 0.0, "kl": 0.0}
        for (x,) in loader:
            logits, mean, log_variance, features = model(x)
            reconstruction, kl = losses(x, logits, mean, log_variance)
            loss = reconstruction + args.beta * kl
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            bank.add(features)
            metrics["reconstruction"] += reconstruction.item() / len(loader)
            metrics["kl"] += kl.item() / len(loader)
        metrics["spread"] = bank.spread()
        print(f"epoch {epoch}: " + ", ".join(f"{k} {v:.3f}" for k, v in metrics.items()))
    seconds = time.perf_counter() - start
    torch.save(model.state_dict(), "vae.pt")
    print(f"trained {step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
