import argparse
import time

import lightning as L
import torch
from module import SPOTS, ListModule, SumModule
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


def make_loader(count, batch_size):
    x = torch.randn(count, 128)
    y = (x @ torch.randn(128, SPOTS)).argmax(dim=1)
    dataset = TensorDataset(x, y)
    sampler = BatchSampler(RandomSampler(dataset), batch_size, drop_last=True)
    return DataLoader(dataset, sampler=sampler, batch_size=None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accuracy", choices=["list", "sum"], default="list")
    args = parser.parse_args()

    torch.set_num_threads(1)
    L.seed_everything(80)
    model = ListModule() if args.accuracy == "list" else SumModule()
    loader = make_loader(110 * 256, 256)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    started = time.perf_counter()
    trainer.fit(model, loader)
    print(f"trained {trainer.global_step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
