"""Question 15, Transformers: does the jury find the accused guilty? A tiny BERT reads the case."""

import argparse
import time

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments


class Cases(Dataset):
    def __init__(self, count, seed):
        generator = torch.Generator().manual_seed(seed)
        self.words = torch.randint(5, 800, (count, 48), generator=generator)
        self.guilty = (self.words[:, 0] > 400).long()
        self.all = torch.ones(48, dtype=torch.long)

    def __len__(self):
        return len(self.guilty)

    def __getitem__(self, index):
        return {
            "input_ids": self.words[index],
            "attention_mask": self.all,
            "labels": self.guilty[index],
        }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=140)
    parser.add_argument("--eval-every", type=int, default=4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(15)
    config = BertConfig(
        vocab_size=800,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=64,
    )
    settings = TrainingArguments(
        output_dir="out",
        max_steps=args.steps,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        eval_strategy="steps",
        eval_steps=args.eval_every,
        logging_steps=50,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        seed=15,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=settings,
        train_dataset=Cases(640, 1),
        eval_dataset=Cases(448, 2),
    )
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
