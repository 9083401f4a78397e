import argparse
import time

import torch
from torch.utils.data import DataLoader

from .config import Config
from .data import Tiles
from .model import UNet
from .trainer import Trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-workers", type=int, default=Config.num_workers)
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    args = parser.parse_args()
    cfg = Config(num_workers=args.num_workers, epochs=args.epochs)

    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    train = DataLoader(
        Tiles(cfg, cfg.tiles, cfg.seed, train=True),
        batch_size=cfg.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=cfg.num_workers,
        persistent_workers=cfg.num_workers > 0,
    )
    valid = DataLoader(Tiles(cfg, cfg.valid_tiles, cfg.seed + 1, train=False), batch_size=8)
    model = UNet(cfg.bands, cfg.classes, cfg.width)
    trainer = Trainer(cfg, model, cfg.epochs * len(train))

    start = time.perf_counter()
    for epoch in range(cfg.epochs):
        loss = trainer.fit_epoch(train)
        print(f"epoch {epoch + 1}: loss {loss:.4f}  IoU {trainer.evaluate(valid):.3f}")
    seconds = time.perf_counter() - start
    torch.save(model.state_dict(), "unet.pt")
    print(f"trained {trainer.steps} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
