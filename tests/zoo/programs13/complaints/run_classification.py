"""Sort complaints to a transport company into departments."""

import os

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import argparse
import random
import time

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

DEPARTMENTS = 6
LENGTH = 40
VOCABULARY = 800


class Complaints(Dataset):
    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(count):
            label = rng.randrange(DEPARTMENTS)
            words = rng.randint(20, LENGTH)
            ids = [
                rng.randrange(10 + label * 40, 50 + label * 40)
                if rng.random() < 0.2
                else rng.randrange(300, VOCABULARY)
                for _ in range(words)
            ]
            mask = [1] * words + [0] * (LENGTH - words)
            self.rows.append(
                {
                    "input_ids": torch.tensor(ids + [0] * (LENGTH - words)),
                    "attention_mask": torch.tensor(mask),
                    "labels": torch.tensor(label),
                }
            )

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def compute_metrics(prediction):
    guess = np.argmax(prediction.predictions, axis=-1)
    return {"accuracy": float((guess == prediction.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eval-steps", type=int, default=10)
    parser.add_argument("--max-steps", type=int, default=120)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    options = parser.parse_args()
    torch.set_num_threads(1)
    set_seed(40)

    config = DistilBertConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=LENGTH,
        dim=96,
        hidden_dim=384,
        n_layers=2,
        n_heads=4,
        num_labels=DEPARTMENTS,
    )
    model = DistilBertForSequenceClassification(config)
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=options.max_steps,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        learning_rate=options.learning_rate,
        warmup_steps=10,
        weight_decay=0.01,
        eval_strategy="steps",
        eval_steps=options.eval_steps,
        logging_steps=20,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=40,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Complaints(960, 40),
        eval_dataset=Complaints(480, 41),
        data_collator=default_data_collator,
        compute_metrics=compute_metrics,
    )
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    model.save_pretrained("out/final")
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
