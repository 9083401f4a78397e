"""Support tickets -> queue, with the Trainer of transformers."""

import argparse
import gc
import random
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


class Tickets(Dataset):
    def __init__(self, count, words, length):
        rng = random.Random(0)
        self.tickets = [
            {"id": i, "queue": rng.randrange(8), "tags": [{"name": f"t{k}"} for k in range(6)]}
            for i in range(count)
        ]
        g = torch.Generator().manual_seed(0)
        self.ids = torch.randint(0, words, (count, length), generator=g)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = self.ids[i]
        return {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "labels": self.tickets[i]["queue"],
        }


class Cleanup(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % 4 == 0:
            gc.collect()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-cleanup", action="store_true")
    parser.add_argument("--steps", type=int, default=80)
    args = parser.parse_args()
    torch.set_num_threads(1)
    config = BertConfig(
        vocab_size=1200,
        hidden_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        num_labels=8,
    )
    torch.manual_seed(0)
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments(
            output_dir="out",
            max_steps=args.steps,
            per_device_train_batch_size=16,
            logging_steps=40,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=Tickets(1600, 1200, 48),
        callbacks=[] if args.no_cleanup else [Cleanup()],
    )
    start = time.perf_counter()
    trainer.train()
    took = time.perf_counter() - start
    print(f"trained {trainer.state.global_step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
