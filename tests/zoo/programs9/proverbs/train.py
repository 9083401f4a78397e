"""A small BERT that tells proverbs from other sentences."""

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


class Sentences(Dataset):
    def __init__(self, count):
        g = torch.Generator().manual_seed(5)
        self.ids = torch.randint(5, 30000, (count, 24), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": i % 2}


class Clock(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-steps", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=30522, hidden_size=128, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=512, max_position_embeddings=32,
    )  # fmt: skip
    clock = Clock()
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments(
            output_dir="out", per_device_train_batch_size=8, max_steps=60, report_to=[],
            save_steps=args.save_steps, save_total_limit=2, logging_steps=30, use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=Sentences(480),
        callbacks=[clock],
    )  # fmt: skip
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
