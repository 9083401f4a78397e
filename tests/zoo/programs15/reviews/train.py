"""Sentiment of book reviews with a small BERT, HF Trainer."""

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

torch.set_num_threads(1)


class Reviews(Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(12)
        self.ids = torch.randint(5, 30522, (n, 48), generator=g)
        self.labels = torch.randint(0, 2, (n,), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {
            "input_ids": self.ids[i],
            "attention_mask": torch.ones(48, dtype=torch.long),
            "labels": self.labels[i],
        }


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-steps", type=int, default=2)
    cli = parser.parse_args()
    torch.manual_seed(12)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=30522,
            hidden_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=384,
        )
    )
    clock = Clock()
    args = TrainingArguments(
        "out",
        max_steps=80,
        per_device_train_batch_size=16,
        learning_rate=2e-4,
        save_strategy="steps",
        save_steps=cli.save_steps,
        save_total_limit=2,
        logging_steps=20,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        seed=12,
    )
    trainer = Trainer(model, args, train_dataset=Reviews(16 * 40), callbacks=[clock])
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
