"""Sorts headlines by section with a small BERT and the Trainer."""

import argparse
import time

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

SECTIONS = 6


class Headlines(Dataset):
    def __init__(self, n, length, vocabulary, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, SECTIONS, n)
        own = 10 + self.labels[:, None] * 40 + rng.integers(0, 40, (n, length))
        common = rng.integers(10, vocabulary, (n, length))
        self.ids = np.where(rng.random((n, length)) < 0.25, own, common)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        ids = torch.from_numpy(self.ids[i])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": self.labels[i]}


def macro_f1(prediction):
    guess = prediction.predictions.argmax(1)
    scores = []
    for c in range(SECTIONS):
        hit = ((guess == c) & (prediction.label_ids == c)).sum()
        scores.append(2 * hit / max((guess == c).sum() + (prediction.label_ids == c).sum(), 1))
    return {"f1": float(np.mean(scores))}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-steps", type=int, default=120)
    parser.add_argument("--eval-steps", type=int, default=10)
    parser.add_argument("--eval-size", type=int, default=1024)
    args = parser.parse_args()
    set_seed(0)
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=1000,
        hidden_size=96,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=256,
        num_labels=SECTIONS,
        max_position_embeddings=64,
    )
    training = TrainingArguments(
        output_dir="out",
        max_steps=args.max_steps,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        learning_rate=5e-4,
        eval_strategy="steps",
        eval_steps=args.eval_steps,
        save_strategy="no",
        logging_steps=20,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=training,
        train_dataset=Headlines(4000, 40, 1000, seed=1),
        eval_dataset=Headlines(args.eval_size, 40, 1000, seed=2),
        compute_metrics=macro_f1,
    )
    start = time.perf_counter()
    trainer.train()
    print(f"trained {args.max_steps} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
