"""A tiny GPT-2 on letters, judged on held-out text as it learns."""

import argparse
import time

import torch
from torch.utils.data import TensorDataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

torch.set_num_threads(1)


def letters(count, length=48, seed=0):
    gen = torch.Generator().manual_seed(seed)
    steps = torch.randint(1, 4, (count, length), generator=gen)
    return TensorDataset(steps.cumsum(1) % 64)


def collate(rows):
    ids = torch.stack([row[0] for row in rows])
    return {"input_ids": ids, "labels": ids}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eval-steps", type=int, default=8)
    options = parser.parse_args()

    config = GPT2Config(
        vocab_size=64,
        n_positions=48,
        n_embd=96,
        n_layer=2,
        n_head=4,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
    )
    arguments = TrainingArguments(
        output_dir="out",
        max_steps=120,
        per_device_train_batch_size=16,
        per_device_eval_batch_size=32,
        eval_strategy="steps",
        eval_steps=options.eval_steps,
        prediction_loss_only=True,
        logging_steps=60,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        seed=5,
    )
    trainer = Trainer(
        model=GPT2LMHeadModel(config),
        args=arguments,
        train_dataset=letters(1920, seed=1),
        eval_dataset=letters(320, seed=2),
        data_collator=collate,
    )
    started = time.perf_counter()
    trainer.train()
    took = time.perf_counter() - started
    print(f"trained {trainer.state.global_step} steps in {took:.3f} s")


if __name__ == "__main__":
    main()
