"""Sentiment fine-tuning with the Hugging Face Trainer."""

import argparse
import time

import torch
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

torch.set_num_threads(1)


class Sentences(torch.utils.data.Dataset):
    def __init__(self, n):
        g = torch.Generator().manual_seed(0)
        self.ids = torch.randint(5, 1500, (n, 48), generator=g)
        self.labels = torch.randint(0, 2, (n,), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {
            "input_ids": self.ids[i],
            "attention_mask": torch.ones(48, dtype=torch.long),
            "labels": self.labels[i],
        }


class Stopwatch(TrainerCallback):
    def on_train_begin(self, *args, **kwargs):
        self.began = time.perf_counter()

    def on_train_end(self, *args, **kwargs):
        self.took = time.perf_counter() - self.began


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=100)
    a = ap.parse_args()
    torch.manual_seed(0)
    config = DistilBertConfig(
        vocab_size=1500, dim=128, n_layers=3, n_heads=4, hidden_dim=384, max_position_embeddings=64
    )
    watch = Stopwatch()
    targs = TrainingArguments(
        output_dir="out",
        max_steps=a.steps,
        per_device_train_batch_size=16,
        learning_rate=1e-4,
        use_cpu=True,
        save_strategy="no",
        report_to=[],
        logging_steps=50,
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=DistilBertForSequenceClassification(config),
        args=targs,
        train_dataset=Sentences(a.steps * 16),
        callbacks=[watch],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {watch.took:.3f} s")
