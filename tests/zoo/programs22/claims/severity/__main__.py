import argparse

import torch
from torch.utils.data import DataLoader

from severity.data import claims
from severity.network import SeverityNet
from severity.trainer import Trainer
from severity.updates import make_optimizer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--optimizer", choices=["layerwise", "adamw"], default="layerwise")
    args = parser.parse_args()

    torch.manual_seed(21)
    torch.set_num_threads(1)
    loader = DataLoader(claims(4096, seed=21), batch_size=64, shuffle=True, drop_last=True)
    model = SeverityNet()
    optimizer = make_optimizer(args.optimizer, model)
    Trainer(model, optimizer, loader, max_steps=args.steps).run()


if __name__ == "__main__":
    main()
