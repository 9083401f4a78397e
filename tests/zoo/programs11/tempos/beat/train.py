import argparse
import time

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from .config import Config
from .model import BeatNet


def make_tracks(cfg):
    n = cfg.steps * cfg.batch
    period = torch.randint(6, 20, (n, 1))
    beats = (torch.arange(cfg.length) % period == 0).float()
    bands = torch.rand(n, cfg.length, cfg.bands) * (0.3 + beats[:, :, None])
    return TensorDataset(bands, beats)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=["recurrent", "parallel"], default="recurrent")
    cfg = Config(form=parser.parse_args().form)
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    loader = DataLoader(make_tracks(cfg), batch_size=cfg.batch, shuffle=True)
    model = BeatNet(cfg)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    steps = 0
    start = time.perf_counter()
    for bands, beats in loader:
        loss = F.binary_cross_entropy_with_logits(model(bands), beats)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    took = time.perf_counter() - start
    print(f"last loss {loss.item():.3f}")
    print(f"trained {steps} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
