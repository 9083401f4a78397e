import argparse
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

from .callbacks import Checkpointer, Progress
from .config import Config
from .model import Classifier
from .trainer import Trainer


def make_data(cfg):
    labels = torch.randint(0, cfg.labels, (cfg.samples,))
    ids = torch.randint(0, cfg.vocab // 10, (cfg.samples, cfg.length)) * 10 + labels[:, None]
    return TensorDataset(ids, labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save", choices=["model", "adapter"], default="model")
    cfg = Config(save=parser.parse_args().save)
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    loader = DataLoader(make_data(cfg), batch_size=cfg.batch, shuffle=True)
    trainer = Trainer(Classifier(cfg), cfg, [Progress(), Checkpointer(cfg)])
    start = time.perf_counter()
    trainer.fit(loader)
    took = time.perf_counter() - start
    print(f"trained {trainer.step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
