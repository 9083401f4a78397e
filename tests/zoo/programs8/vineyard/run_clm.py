"""Train a small GPT on tasting notes."""

import argparse
import random

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed
from transformers.utils import logging

from callbacks import Clock, WeightWatch

logging.set_verbosity_error()
WORDS = "plum oak smoke cherry dry long soft tannin bright acid leather honey fig mint".split()


def tasting_notes(count, length):
    rng = random.Random(0)
    notes = []
    for _ in range(count):
        text = " ".join(rng.choice(WORDS) for _ in range(length // 3))
        ids = torch.tensor(list(text.encode()[:length]))
        notes.append({"input_ids": ids, "labels": ids.clone()})
    return notes


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--watch-every", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    set_seed(0)
    config = GPT2Config(
        vocab_size=128, n_positions=96, n_embd=96, n_layer=3, n_head=4, bos_token_id=0,
        eos_token_id=0,
    )  # fmt: skip
    clock = Clock()
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=TrainingArguments(
            output_dir="gpt",
            max_steps=70,
            per_device_train_batch_size=8,
            learning_rate=1e-3,
            logging_steps=35,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=tasting_notes(256, 96),
        callbacks=[WeightWatch("weights.jsonl", every=options.watch_every), clock],
    )
    trainer.train()
    print(f"trained {trainer.state.global_step} steps in {clock.seconds:.3f} s")


if __name__ == "__main__":
    main()
