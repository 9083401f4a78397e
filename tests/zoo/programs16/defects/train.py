import argparse
import logging

import lightning as L
import torch
from torch.utils.data import DataLoader, TensorDataset

from callbacks import ParameterReport, Stopwatch
from model import DefectNet


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--report-every", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    L.seed_everything(3, verbose=False)
    patches = torch.randn(1920, 1, 40, 40)
    labels = torch.randint(5, (1920,))
    loader = DataLoader(TensorDataset(patches, labels), batch_size=16, shuffle=True)
    stopwatch = Stopwatch()
    trainer = L.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        callbacks=[stopwatch, ParameterReport("parameters.jsonl", args.report_every)],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(DefectNet(), loader)
    print(f"trained {trainer.global_step} steps in {stopwatch.seconds:.3f} s")


if __name__ == "__main__":
    main()
