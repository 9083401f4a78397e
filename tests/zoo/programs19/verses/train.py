"""A tiny language model of verses with the transformers Trainer."""

import os
import sys
import time

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

CONFIG = {
    "steps": 160,
    "batch": 4,
    "context": 32,
    "save_steps": 1,
}


class Verses(Dataset):
    def __init__(self, count, context, vocabulary):
        generator = torch.Generator().manual_seed(9)
        start = torch.randint(vocabulary, (count, 1), generator=generator)
        stride = torch.randint(1, 7, (count, 1), generator=generator)
        self.tokens = (start + stride * torch.arange(context)) % vocabulary

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index]}


def main(overrides):
    config = dict(CONFIG)
    for item in overrides:
        key, value = item.split("=")
        config[key] = int(value)
    torch.set_num_threads(1)
    torch.manual_seed(9)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=2000,
            n_positions=config["context"],
            n_embd=128,
            n_layer=2,
            n_head=4,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir="verses",
            max_steps=config["steps"],
            per_device_train_batch_size=config["batch"],
            learning_rate=5e-4,
            logging_steps=40,
            save_strategy="steps",
            save_steps=config["save_steps"],
            save_total_limit=2,
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        ),
        train_dataset=Verses(config["steps"] * config["batch"], config["context"], 2000),
    )
    begin = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - begin
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
