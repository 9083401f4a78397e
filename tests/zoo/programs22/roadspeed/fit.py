import argparse
import logging
import time
import warnings

import lightning as L
import torch
from model import BufferedForecaster, SpeedForecaster
from roads import measured_speeds, road_network
from torch.utils.data import DataLoader


class Clock(L.Callback):
    def on_train_start(self, trainer, module):
        self.start = time.perf_counter()

    def on_train_end(self, trainer, module):
        self.seconds = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--segments", type=int, default=420)
    parser.add_argument("--steps", type=int, default=140)
    parser.add_argument("--model", choices=["plain", "buffered"], default="plain")
    args = parser.parse_args()

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", ".*does not have many workers.*")
    L.seed_everything(5, verbose=False)
    torch.set_num_threads(1)
    adjacency = road_network(args.segments, seed=5)
    data = measured_speeds(adjacency, windows=1280, seed=6)
    loader = DataLoader(data, batch_size=24, shuffle=True, drop_last=True)
    kind = BufferedForecaster if args.model == "buffered" else SpeedForecaster
    clock = Clock()
    trainer = L.Trainer(
        max_steps=args.steps,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[clock],
    )
    trainer.fit(kind(adjacency), loader)
    print(f"trained {trainer.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
