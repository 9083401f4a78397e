"""Echoes in alcoves: a convolution over time, trained with the Trainer."""

import time

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

STEPS = 90


class Echoes(Dataset):
    def __init__(self, count):
        self.count = count
        self.sound = torch.randn(128, 64, 256)
        self.delay = self.sound[:, :5].mean(dim=2).argmax(dim=1)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"sound": self.sound[index % 128], "labels": self.delay[index % 128]}


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.ear = nn.Conv1d(64, 128, 5, padding=2)
        self.mind = nn.Conv1d(128, 128, 3, padding=1)
        self.voice = nn.Linear(128, 5)

    def forward(self, sound, labels=None):
        states = torch.relu(self.mind(torch.relu(self.ear(sound))))
        logits = self.voice(states.mean(dim=2))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    clock = Clock()
    settings = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=16,
        max_steps=STEPS,
        learning_rate=1e-3,
        save_strategy="no",
        logging_steps=24,
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model=Listener(), args=settings, train_dataset=Echoes(STEPS * 16), callbacks=[clock]
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
