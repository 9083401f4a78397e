import time

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    default_data_collator,
    set_seed,
)
from transformers.utils import logging


class Applications(torch.utils.data.Dataset):
    def __init__(self, count, length, seed):
        rng = np.random.default_rng(seed)
        self.rows = [
            {"input_ids": torch.from_numpy(ids), "labels": int(label)}
            for ids, label in zip(rng.integers(0, 1500, (count, length)), rng.integers(0, 3, count))
        ]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Timing(TrainerCallback):
    def on_train_begin(self, args, state, control, **kwargs):
        self.begin = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs):
        self.seconds = time.perf_counter() - self.begin


if __name__ == "__main__":
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    set_seed(7)
    model = BertForSequenceClassification(
        BertConfig(
            vocab_size=1500,
            hidden_size=192,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=768,
            num_labels=3,
        )
    )
    timing = Timing()
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="grants",
            per_device_train_batch_size=16,
            max_steps=90,
            learning_rate=1e-4,
            lr_scheduler_type="cosine",
            logging_steps=30,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
        ),
        data_collator=default_data_collator,
        train_dataset=Applications(16 * 45, 32, seed=1),
        callbacks=[timing],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {timing.seconds:.3f} s")
