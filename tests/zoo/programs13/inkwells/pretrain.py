"""Pretrain a very small GPT-2 on made-up correspondence, from a configuration."""

import os

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import time
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    HfArgumentParser,
    Trainer,
    TrainingArguments,
    set_seed,
)


@dataclass
class ModelArguments:
    n_embd: int = field(default=96)
    n_layer: int = field(default=2)
    n_head: int = field(default=4)
    block: int = field(default=64, metadata={"help": "Tokens in a row"})
    vocabulary: int = field(default=256)


class Blocks(torch.utils.data.Dataset):
    """The token stream, cut into rows of equal length."""

    def __init__(self, tokens, block, vocabulary, seed):
        rng = np.random.default_rng(seed)
        habits = rng.integers(0, vocabulary, (vocabulary, 4))
        stream = np.zeros(tokens, np.int64)
        choices = rng.integers(0, 4, tokens)
        for i in range(1, tokens):
            stream[i] = habits[stream[i - 1], choices[i]]
        self.rows = torch.from_numpy(stream[: tokens // block * block].reshape(-1, block))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return {"input_ids": row, "labels": row}


def main():
    (settings,) = HfArgumentParser(ModelArguments).parse_args_into_dataclasses()
    torch.set_num_threads(1)
    set_seed(55)
    config = GPT2Config(
        vocab_size=settings.vocabulary,
        n_positions=settings.block,
        n_embd=settings.n_embd,
        n_layer=settings.n_layer,
        n_head=settings.n_head,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    model = GPT2LMHeadModel(config)
    train = Blocks(100_000, settings.block, settings.vocabulary, 55)
    valid = Blocks(4_000, settings.block, settings.vocabulary, 56)
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=140,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=16,
        learning_rate=1e-3,
        lr_scheduler_type="cosine",
        warmup_steps=10,
        max_grad_norm=1.0,
        eval_strategy="steps",
        eval_steps=70,
        logging_steps=35,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=55,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=train, eval_dataset=valid)
    start = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - start
    trainer.save_model("out/final")
    print(f"trained {trainer.state.global_step} steps in {seconds:.3f} s")


if __name__ == "__main__":
    main()
