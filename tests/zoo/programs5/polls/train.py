"""Stance of answers to open questions of a poll, with the Trainer of transformers."""

import argparse
import os
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

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


class Answers(Dataset):
    def __init__(self, n, length=48, n_words=2000, seed=0):
        g = torch.Generator().manual_seed(seed)
        self.words = torch.randint(5, n_words, (n, length), generator=g)
        self.stance = (self.words < 700).sum(1).sub(length // 3).sign().add(1)

    def __len__(self):
        return len(self.words)

    def __getitem__(self, i):
        return {"input_ids": self.words[i], "labels": self.stance[i]}


def metrics(prediction):
    chosen = prediction.predictions.argmax(-1)
    return {"accuracy": float(np.mean(chosen == prediction.label_ids))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eval-steps", type=int, default=8)
    parser.add_argument("--steps", type=int, default=96)
    args = parser.parse_args()
    set_seed(0)
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=2000,
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=64,
        num_labels=3,
    )
    trainer = Trainer(
        BertForSequenceClassification(config),
        TrainingArguments(
            "out",
            max_steps=args.steps,
            per_device_train_batch_size=16,
            per_device_eval_batch_size=64,
            eval_strategy="steps",
            eval_steps=args.eval_steps,
            logging_steps=48,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=Answers(1600),
        eval_dataset=Answers(600, seed=1),
        compute_metrics=metrics,
    )
    start = time.perf_counter()
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {time.perf_counter() - start:.3f} s")


if __name__ == "__main__":
    main()
