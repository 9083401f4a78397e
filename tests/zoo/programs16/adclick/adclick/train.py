import argparse
import time
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from .layers import INTERACTIONS
from .model import DeepFM


@dataclass
class Config:
    interaction: str = "pairs"
    rows: int = 64000
    fields: int = 30
    buckets: int = 100
    dims: int = 16
    hidden: int = 384
    batch_size: int = 256
    epochs: int = 1


def make_clicks(cfg: Config):
    generator = torch.Generator().manual_seed(12)
    features = torch.randint(cfg.buckets, (cfg.rows, cfg.fields), generator=generator)
    clicked = (features[:, 0] + features[:, 1] > cfg.buckets).float()
    return features, clicked


class ClickDataset(TensorDataset):
    def __getitems__(self, indices):
        index = torch.tensor(indices)
        return self.tensors[0][index], self.tensors[1][index]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--interaction", choices=sorted(INTERACTIONS), default="pairs")
    cfg = Config(**vars(parser.parse_args()))
    torch.set_num_threads(1)
    torch.manual_seed(0)

    accelerator = Accelerator(cpu=True)
    loader = DataLoader(
        ClickDataset(*make_clicks(cfg)),
        batch_size=cfg.batch_size,
        shuffle=True,
        collate_fn=lambda batch: batch,
    )
    model = DeepFM(cfg.fields, cfg.buckets, cfg.dims, cfg.hidden, cfg.interaction)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.02)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    criterion = nn.BCEWithLogitsLoss()
    steps = 0
    started = time.perf_counter()
    for _ in range(cfg.epochs):
        for features, clicked in loader:
            loss = criterion(model(features), clicked)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
    elapsed = time.perf_counter() - started
    accelerator.print(f"loss {loss.item():.4f}")
    print(f"trained {steps} steps in {elapsed:.3f} s")


if __name__ == "__main__":
    main()
