"""Guess a recipe's cuisine from its ingredients with a small BERT."""

import argparse
import time

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.utils import logging

logging.set_verbosity_error()


class Recipes(Dataset):
    def __init__(self, count=128, length=48):
        g = torch.Generator().manual_seed(0)
        self.cuisine = torch.randint(0, 6, (count,), generator=g)
        self.ids = torch.randint(10, 800, (count, length), generator=g)
        self.ids[:, 5] = self.cuisine + 2

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {
            "input_ids": self.ids[i],
            "attention_mask": torch.ones_like(self.ids[i]),
            "labels": self.cuisine[i],
        }


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--persistent", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=800,
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        num_labels=6,
    )
    args = TrainingArguments(
        output_dir="out",
        num_train_epochs=20,
        per_device_train_batch_size=16,
        dataloader_num_workers=2,
        dataloader_persistent_workers=options.persistent,
        learning_rate=5e-4,
        logging_steps=40,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=1,
    )
    clock = Clock()
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=args,
        train_dataset=Recipes(),
        callbacks=[clock],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
