import argparse
import time

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)
from transformers.utils import logging


class Reviews(Dataset):
    def __init__(self, count, length=24, seed=12):
        rng = np.random.default_rng(seed)
        self.ids = rng.integers(5, 8000, (count, length))
        self.stars = rng.integers(0, 5, count)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = torch.from_numpy(self.ids[i])
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": self.stars[i]}


class Stopwatch(TrainerCallback):
    seconds = 0.0

    def on_train_begin(self, args, state, control, **kwargs):
        self.start = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.start


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--save-steps", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=4)
    return parser.parse_args()


def main():
    options = parse()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    set_seed(0)
    config = DistilBertConfig(
        vocab_size=8000, dim=256, n_layers=2, n_heads=4, hidden_dim=768, num_labels=5
    )
    arguments = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=options.batch_size,
        num_train_epochs=1,
        learning_rate=5e-5,
        save_steps=options.save_steps,
        save_total_limit=2,
        logging_steps=60,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    watch = Stopwatch()
    trainer = Trainer(
        model=DistilBertForSequenceClassification(config),
        args=arguments,
        train_dataset=Reviews(options.batch_size * 120),
        callbacks=[watch],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {watch.seconds:.3f} s")


if __name__ == "__main__":
    main()
