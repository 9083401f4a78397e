"""Decode movement from spikes with torch, on the GPU where there is one.

python examples/decoding/train_torch.py --epochs 20
"""

from __future__ import annotations

import argparse

import torch
from data import r2, recordings
from stepwatch.compat.decoding import train_decoding_torch
from stepwatch.compat.training_analysis import analyze
from stepwatch.compat.training_profiler import get_profiler
from torch_model import Decoder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--trials", type=int, default=512)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--no-profiling", action="store_true")
    options = parser.parse_args()

    torch.manual_seed(0)
    train = tuple(torch.from_numpy(part) for part in recordings(options.trials, seed=1))
    val = tuple(torch.from_numpy(part) for part in recordings(128, seed=2))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*train), batch_size=32, shuffle=True
    )
    model = Decoder(train[0].shape[-1])
    train_decoding_torch(
        model,
        loader,
        train,
        val,
        torch.optim.AdamW(model.parameters(), lr=3e-3),
        torch.nn.functional.mse_loss,
        num_epochs=options.epochs,
        enable_profiling=not options.no_profiling,
        log_every=options.log_every,
    )
    model.eval()
    with torch.no_grad():
        predicted = model(val[0].to(next(model.parameters()).device)).cpu()
    print(f"validation R2: {r2(predicted, val[1]):.4f}")
    if not options.no_profiling:
        print(f"\n{analyze(get_profiler()).report()}")


if __name__ == "__main__":
    main()
