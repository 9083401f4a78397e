"""Does a parrot mean it? A small BERT on transcribed phrases."""

import argparse
import time

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainingArguments,
    set_seed,
)

WORDS = 2000
LENGTH = 48


class Phrases(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(5, WORDS, (count, LENGTH), generator=generator)
        self.labels = (self.tokens < WORDS // 2).sum(dim=1).gt(LENGTH // 2).long()
        self.mask = torch.ones(LENGTH, dtype=torch.long)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {
            "input_ids": self.tokens[index],
            "attention_mask": self.mask,
            "labels": self.labels[index],
        }


def accuracy(prediction):
    found = prediction.predictions.argmax(axis=1)
    return {"accuracy": float((found == prediction.label_ids).mean())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=90)
    parser.add_argument("--eval-steps", type=int, default=5)
    args = parser.parse_args()

    torch.set_num_threads(1)
    set_seed(110)
    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=2,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments(
            output_dir="out",
            max_steps=args.max_steps,
            per_device_train_batch_size=24,
            per_device_eval_batch_size=24,
            learning_rate=5e-4,
            eval_strategy="steps",
            eval_steps=args.eval_steps,
            logging_steps=30,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            use_cpu=True,
        ),
        train_dataset=Phrases(args.max_steps * 24, seed=1),
        eval_dataset=Phrases(192, seed=2),
        compute_metrics=accuracy,
    )
    started = time.perf_counter()
    result = trainer.train()
    print(f"trained {result.global_step} steps in {time.perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
