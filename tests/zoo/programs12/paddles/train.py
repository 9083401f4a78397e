"""Strokes of paddles: a network over frames of motion."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments


class Strokes(Dataset):
    def __init__(self, count, precision):
        rng = np.random.default_rng(8)
        frames = rng.standard_normal((128, 64, 192)).astype(precision)
        self.count = count
        self.frames = torch.from_numpy(frames)
        self.force = self.frames[..., :12].mean(dim=-1)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"frames": self.frames[index % 128], "labels": self.force[index % 128]}


class Force(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(192, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, 1),
        )

    def forward(self, frames, labels=None):
        force = self.net(frames).squeeze(-1)
        return {"loss": nn.functional.mse_loss(force, labels), "logits": force}


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=["float64", "float32"], default="float64")
    parser.add_argument("--steps", type=int, default=90)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)

    clock = Clock()
    settings = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=24,
        max_steps=args.steps,
        learning_rate=1e-3,
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model=Force().to(getattr(torch, args.precision)),
        args=settings,
        train_dataset=Strokes(args.steps * 24, args.precision),
        callbacks=[clock],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
